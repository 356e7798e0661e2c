"""Every loss, miner and regulariser states its formula: in docs/definitions.md, with its defaults, or in help()."""

import inspect
import re
from pathlib import Path

import pytest

from nearkin.registry import LOSSES, MINERS, REGULARISERS, hyperparameters

DEFINITIONS = (Path(__file__).parents[2] / "docs" / "definitions.md").read_text()
TITLES = {"loss": "## Losses", "miner": "## Miners", "regulariser": "## Regularisers"}
PARTS = [(registry, name) for registry in (LOSSES, MINERS, REGULARISERS) for name in registry.names()]


def defined(registry, name):
    """The line of definitions.md that names a part and its defaults, or None."""
    text = DEFINITIONS[DEFINITIONS.index(TITLES[registry.kind]) :]
    return next((line for line in text.splitlines() if f"**{name}**" in line), None)


def formula(part):
    """The indented lines of a docstring that stand before its sections."""
    head = re.split(r"^(?:Parameters|Shapes|Example):", inspect.getdoc(part) or "", flags=re.M)[0]
    return re.findall(r"^ {4}\S.*", head, re.M)


@pytest.mark.parametrize(("registry", "name"), PARTS, ids=[f"{r.kind} {n}" for r, n in PARTS])
def test_every_part_states_its_formula(registry, name):
    line = defined(registry, name)
    if line is None:
        where = f"{registry[name].__module__}.{registry[name].__qualname__}"
        assert formula(registry[name]), f"{name}: no formula in the docstring of {where}, and none in definitions.md"
    else:
        defaults = [f"{key}={p.default}" for key, p in hyperparameters(registry[name]).items()]
        assert [d for d in defaults if d not in line] == [], f"definitions.md states other defaults of {name}"


def test_only_an_indented_formula_counts():
    assert len(formula(LOSSES["multi_similarity"])) == 1
    assert formula(MINERS["all"]) == []  # words, and an indented example
