"""docs/architecture.md lists every module of the package root, and no module imports from one below it.

As a program (`make imports`) it prints the graph: each room, what it imports from, and in how many files.
"""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nearkin"
ENTRIES = re.findall(r"^    ((?:\w+(?:\.py|/)(?:, )?)+)", (ROOT / "docs" / "architecture.md").read_text(), re.M)
ORDER = [name.strip().removesuffix(".py").rstrip("/") for entry in ENTRIES for name in entry.split(",")]
FILES = [f for f in SOURCE.rglob("*.py") if f.parent != SOURCE or not f.name.startswith("__")]


def place(file):
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(file):
    """The modules of nearkin that a file names in its imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "nearkin":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nearkin."):
            yield node.module.split(".")[1]


def graph():
    """Room -> room it imports from -> number of files that do."""
    edges = defaultdict(Counter)
    for file in FILES:
        edges[place(file)].update(set(imported(file)) - {place(file)})
    return edges


def test_the_root_stays_small():
    assert len([f for f in SOURCE.glob("*.py") if not f.name.startswith("__")]) <= 14


def test_every_module_is_listed_once():
    assert len(ORDER) == len(set(ORDER)) > 20
    assert set(ORDER) == {place(file) for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_module_imports_from_below(file):
    above = ORDER[: ORDER.index(place(file)) + 1]
    assert [name for name in imported(file) if name not in above] == []


if __name__ == "__main__":
    for room in ORDER:
        found = sorted(graph()[room].items(), key=lambda edge: ORDER.index(edge[0]))
        print(f"{room:13}", ", ".join(f"{other} {count}" for other, count in found) or "nothing")
