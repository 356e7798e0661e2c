"""docs/architecture.md lists every module of the package root, and no module imports from one below it.

As a program (`make imports`) it prints the graph: each room, what it imports from, and in how many files.
"""

import ast
import importlib
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


ROOMS = sorted(folder for folder in SOURCE.iterdir() if (folder / "__init__.py").exists())


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_room_lists_its_public_names(room):
    """In `__all__`, or module by module in its docstring."""
    text = (room / "__init__.py").read_text()
    if "__all__" in text:
        return
    listed = set(re.findall(r"^    (\w+) {2,}\S", ast.get_docstring(ast.parse(text)) or "", re.M))
    modules = {file.stem for file in room.glob("*.py")}
    assert listed
    assert listed <= modules, "a name that is no module"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_private_modules_stay_in_their_room(file):
    """A name with an underscore is imported in its own room alone."""
    text = file.read_text()
    used = re.findall(r"\bnearkin\.(\w+)\.(_[a-z]\w*)\b", text)
    assert [f"{room}.{name}" for room, name in used if room != place(file)] == []


PROGRAMS = [*(ROOT / "bench").glob("*.py"), *(ROOT / "examples").glob("*.py")]


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_benches_and_examples_import_is_there(file):
    """They run for minutes, so that no test starts them."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nearkin":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")


if __name__ == "__main__":
    for room in ORDER:
        found = sorted(graph()[room].items(), key=lambda edge: ORDER.index(edge[0]))
        print(f"{room:13}", ", ".join(f"{other} {count}" for other, count in found) or "nothing")
