"""docs/definitions.md names every part with its defaults; the example of docs/adding-a-loss.md runs."""

import re
from pathlib import Path

import pytest
import torch
from oracles.words import ORACLES

from nearkin.registry import LOSSES, MINERS, REGULARISERS, hyperparameters

DOCS = Path(__file__).parents[2] / "docs"
PARTS = [(registry, name) for registry in (LOSSES, MINERS, REGULARISERS) for name in registry.names()]


@pytest.mark.parametrize(("registry", "name"), PARTS, ids=[f"{r.kind} {n}" for r, n in PARTS])
def test_definitions_state_every_part_with_its_defaults(registry, name):
    title = {"loss": "## Losses", "miner": "## Miners", "regulariser": "## Regularisers"}[registry.kind]
    text = (DOCS / "definitions.md").read_text()
    lines = [line for line in text[text.index(title) :].splitlines() if f"**{name}**" in line]
    assert lines, f"{name} is not in definitions.md"
    for key, parameter in hyperparameters(registry[name]).items():
        assert f"{key}={parameter.default}" in lines[0]


def test_the_example_runs_and_equals_its_oracle():
    loss_code, oracle_code = re.findall(r"```python\n(.*?)```", (DOCS / "adding-a-loss.md").read_text(), re.DOTALL)
    space: dict = {}
    try:
        exec(loss_code, space)
        exec(oracle_code, space)
        z = torch.randn(8, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        y = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3])
        loss = LOSSES["my_loss"]()
        torch.testing.assert_close(loss(z, y), space["my_loss"](loss, z, y.tolist(), None))
    finally:
        LOSSES._classes.pop("my_loss", None)
        ORACLES.pop("my_loss", None)
