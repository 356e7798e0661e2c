"""What `help()` shows: every public thing has a docstring, every argument of a part has a line, and examples run.

And one matter of language: "per" is the word for "for each" ("one label per embedding"), not an article.
"""

import importlib
import inspect
import pkgutil
import re
import textwrap
from functools import cached_property
from pathlib import Path

import pytest
import torch

import nearkin
from nearkin import registry
from nearkin.registry import LOSSES, MINERS, REGULARISERS, SAMPLERS, Registry

ROOT = Path(__file__).parents[1]
MODULES = ["nearkin", *(m.name for m in pkgutil.walk_packages(nearkin.__path__, "nearkin."))]
MODULES.remove("nearkin.__main__")  # importing it runs the command line
REGISTRIES = [r for r in vars(registry).values() if isinstance(r, Registry)]
PARTS = [(r, name) for r in REGISTRIES for name in r.names() if r[name].__module__.startswith("nearkin.")]
ACCESSORS = (staticmethod, classmethod, property, cached_property)


def parts_of(*registries):
    chosen = [(r, name) for r, name in PARTS if r in registries]
    return pytest.mark.parametrize(("registry", "name"), chosen, ids=[f"{r.kind} {n}" for r, n in chosen])


def public(space):
    return [(name, thing) for name, thing in vars(space).items() if not name.startswith("_")]


def class_is_documented(cls):
    """By a docstring of its own; the one that a dataclass or a named tuple writes for itself says nothing."""
    doc = vars(cls).get("__doc__")
    return bool(doc) and not doc.startswith(f"{cls.__name__}(")


def undocumented(module):
    for name, thing in public(module):
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(thing):
            if not class_is_documented(thing):
                yield name
            for member, value in public(thing):
                wanted = inspect.isfunction(inspect.unwrap(value)) if callable(value) else isinstance(value, ACCESSORS)
                if wanted and not inspect.getdoc(getattr(thing, member)):
                    yield f"{name}.{member}"
        elif callable(thing) and inspect.isfunction(inspect.unwrap(thing)) and not inspect.getdoc(thing):
            yield name


@pytest.mark.parametrize("name", MODULES)
def test_every_public_thing_has_a_docstring(name):
    missing = list(undocumented(importlib.import_module(name)))
    assert not missing, f"{name}: no docstring on {', '.join(missing)}"


@parts_of(*REGISTRIES)
def test_every_argument_is_explained(registry, name):
    part = registry[name]
    doc = inspect.getdoc(part) or ""
    arguments = inspect.signature(part).parameters
    missing = [a for a in arguments if not re.search(rf"^\s+(\w+, )*{a}(, \w+)*: ", doc, re.M)]
    where = f"{part.__module__}.{part.__qualname__}"
    assert not missing, f"{where}: its docstring has no line `name: meaning` for {', '.join(missing)}"


@parts_of(LOSSES)
def test_a_loss_states_source_shapes_and_example(registry, name):
    doc = inspect.getdoc(registry[name])
    assert [word for word in ("Source:", "Shapes:", "Example:") if word not in doc] == []


def example(part):
    """The code under `Example:`, which closes the docstring."""
    return textwrap.dedent((inspect.getdoc(part) or "").partition("\nExample:\n")[2])


@parts_of(LOSSES, MINERS, REGULARISERS, SAMPLERS)
def test_the_example_runs(registry, name):
    code = example(registry[name])
    assert code
    space = {
        "nearkin": nearkin,
        "embeddings": torch.randn(8, 8, generator=torch.Generator().manual_seed(0)),
        "labels": torch.tensor([0, 0, 1, 1, 2, 2, 3, 3]),
        "images": torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(1)),
        "stages": [torch.nn.Flatten(), torch.nn.Linear(48, 8)],
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        exec(code, space)
    made = [key for key in ("value", "tuples", "rows") if key in space]
    assert made
    if registry in (LOSSES, REGULARISERS):
        assert "value" in made
    if "value" in made:
        assert space["value"].shape == ()
        assert space["value"].isfinite()
    if "tuples" in made:
        assert isinstance(space["tuples"], registry[name].gives)
    if "rows" in made:
        assert space["rows"].shape == (4,)


NOUNS = "run|row|query|image|class|step|batch|embedding|epoch|loss|metric|sample|anchor|second"
NOT_A_NOUN = "as|at|by|for|from|in|into|is|of|on|than|times|to|when|where|with|within"  # "one of a class" is right
ARTICLE_FOR_PER = re.compile(rf"\b(one|each|per|\d+) (?!(?:{NOT_A_NOUN})\b)[a-z]+ an? ({NOUNS})\b", re.I)
TEXTS = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]


def articles_for_per(text):
    """Also across the end of a line, and of a line of a comment or of a string in several parts."""
    joined = re.sub(r"""\s*["']?\s*\n\s*(#\s*|f?["'](?!["']))?""", " ", text)
    return [joined[max(0, m.start() - 20) : m.end() + 20] for m in ARTICLE_FOR_PER.finditer(joined)]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_per_is_not_an_article(file):
    assert articles_for_per(file.read_text()) == []


def test_articles_for_per_are_found():
    assert articles_for_per("one label an embedding")
    assert articles_for_per("# drawn once: one draw a\n    # batch")
    assert articles_for_per('f"{x}; one label "\n    f"an embedding"')
    assert not articles_for_per("one label per embedding, one of a class, column 0 where a row has none")
