"""docs/extending.md, followed to the letter in a copy of the package: the linter is content, the suite checks the new
parts, and they train, evaluate and analyse."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r"^`([\w./]+)`, (a new file|add)[^`\n]*:\n```python\n(.*?)^```$", re.M | re.S)
EXPORT = re.compile(r"^`([\w./]+)`, add `(from [\w.]+ import \w+)`, and `\"(\w+)\"` to\s+`__all__`\.$", re.M)
NAMES = sorted(set(re.findall(r"^@\w+(?:\.register)?\(\"(my_\w+)\"", PAGE, re.M)))

# files of the suite that check a part of each kind because it is registered
CHECKED_BY = {
    "my_loss": [
        "losses/test_loss_oracles.py",
        "losses/test_loss_properties.py",
        "losses/test_loss_docs.py",
        "runs/test_search_spaces.py",
    ],
    "my_miner": [
        "miners/test_miners.py",
        "engine/test_objective.py",
        "losses/test_loss_docs.py",
        "runs/test_search_spaces.py",
    ],
    "my_sampler": ["samplers/test_samplers.py"],
    "my_backbone": ["models/test_backbones.py", "models/test_drml_head.py"],
    "my_data": ["data/test_adapters.py"],
    "": ["test_architecture.py"],
}
# tests that go through a registry in one go; `test_query_...` compare all metrics with their loops
AT_ONCE = ["test_list", "test_empty_lists", "test_query_is_gallery", "test_query_and_gallery_apart"]


class Edit(NamedTuple):
    """What the page wants done to one file."""

    file: str
    how: str  # new, code, import or name
    text: str


def edits(section: str) -> list[Edit]:
    found = [Edit(file, "new" if how == "a new file" else "code", code) for file, how, code in BLOCK.findall(section)]
    for file, line, name in EXPORT.findall(section):
        found += [Edit(file, "import", line), Edit(file, "name", name)]
    return found


SECTIONS = {title: edits(text) for title, text in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)}


def follow(edit: Edit, root: Path) -> None:
    """Do it; nothing, where it has been done before."""
    path = root / edit.file
    if edit.how == "new":
        if not path.exists():
            path.write_text(edit.text)
        return
    text = path.read_text()
    if edit.how == "code" and edit.text.splitlines()[0] not in text:
        text = f"{text.rstrip()}\n\n\n{edit.text}"
    elif edit.how == "import" and edit.text not in text:
        lines = text.splitlines(keepends=True)
        others = [i for i, line in enumerate(lines) if line.startswith("from nearkin.")]
        place = next((i for i in others if lines[i].split()[1] > edit.text.split()[1]), others[-1] + 1)
        text = "".join([*lines[:place], f"{edit.text}\n", *lines[place:]])
    elif edit.how == "name":
        text = with_name(text, edit.text)
    path.write_text(text)


def with_name(text: str, name: str) -> str:
    """The text of a module with one more name in `__all__`, sorted as ruff wants it: CONSTANTS, Classes, the rest."""
    node = next(n for n in ast.parse(text).body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
    names = ast.literal_eval(node.value)
    if name in names:
        return text
    names = sorted([*names, name], key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    quoted = [f'"{n}"' for n in names]
    whole = f"__all__ = [{', '.join(quoted)}]"
    if len(whole) > 120:  # as ruff formats it: one name per line
        whole = "__all__ = [\n" + "".join(f"    {q},\n" for q in quoted) + "]"
    lines = text.splitlines()
    return "\n".join([*lines[: node.lineno - 1], whole, *lines[node.end_lineno :]]) + "\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package and its tests, with everything that the page adds."""
    root = tmp_path_factory.mktemp("extended")
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, root)
    for section in SECTIONS.values():
        for edit in section:
            follow(edit, root)
    python(root, "import runpy\nrunpy.run_module('nearkin.config.describe', run_name='__main__')")  # make catalogue
    return root


def python(copy: Path, code: str, *arguments: str) -> str:
    """Run code that sees the copy; what it printed."""
    first = "import pathlib, sys, nearkin\nassert pathlib.Path(nearkin.__file__).is_relative_to(sys.argv[1])\n"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment |= {"PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    words = [sys.executable, "-c", first + code, str(copy), *arguments]
    done = subprocess.run(words, cwd=copy, env=environment, capture_output=True, text=True, timeout=300)
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("PASSED")]
    assert done.returncode == 0, "\n".join(said)
    return done.stdout


def test_three_files_for_a_loss_and_two_for_any_other_part():
    files = {title: {edit.file for edit in section} for title, section in SECTIONS.items() if section}
    kinds = ("loss", "miner", "metric", "data set", "protocol", "sampler", "backbone", "head", "analysis")
    assert [title.split(" ", 1)[1] for title in files] == list(kinds)
    assert {title: len(found) for title, found in files.items()} == {t: 3 if t == "A loss" else 2 for t in files}


def test_nothing_on_the_page_is_overlooked():
    marked = re.findall(r"^`(?:src|tests)/", PAGE, re.M)
    assert len(BLOCK.findall(PAGE)) + len(EXPORT.findall(PAGE)) == len(marked)
    assert len(BLOCK.findall(PAGE)) == PAGE.count("```python\n")
    assert len(NAMES) == 9


def test_the_linter_is_content(copy):
    files = sorted({edit.file for section in SECTIONS.values() for edit in section})  # `make lint` checks the others
    words = [sys.executable, "-m", "ruff", "check", "--no-cache", *files]
    done = subprocess.run(words, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_done_once_is_done(copy):
    """So that the suite also passes for those who have followed the page in their own checkout."""
    files = {edit.file for section in SECTIONS.values() for edit in section}
    before = {file: (copy / file).read_text() for file in files}
    for section in SECTIONS.values():
        for edit in section:
            follow(edit, copy)
    assert {file: (copy / file).read_text() for file in files} == before


def test_the_suite_finds_and_checks_the_new_parts(copy, tmp_path):
    chosen = " or ".join(["(my_ and not my_images)", "extending", "test_architecture", *AT_ONCE])
    said = python(
        copy,
        "import pytest\nsys.exit(pytest.main(sys.argv[2:]))",
        "tests",
        "--ignore=tests/test_extending.py",
        "-m",
        "not slow",
        "-k",
        chosen,
        "-rpfE",
        "-p",
        "no:cacheprovider",
        "--assert=plain",  # to rewrite all files takes longer than to run these tests
        "--basetemp",
        str(tmp_path / "base"),
    )
    passed = [line for line in said.splitlines() if line.startswith("PASSED")]
    wanted = [(f"tests/{file}::", name) for name, files in CHECKED_BY.items() for file in files]
    wanted += [("tests/test_words.py::", name) for name in NAMES] + [("tests/", f"::{test}") for test in AT_ONCE]
    assert [pair for pair in wanted if not any(pair[0] in line and pair[1] in line for line in passed)] == []


USE = """
import json
import numpy as np
from typer.testing import CliRunner
from nearkin.cli.app import app

rng = np.random.default_rng(0)
labels = np.repeat(np.arange(12), 10)
images = rng.integers(0, 255, (12, 1, 1, 3))[labels] + rng.integers(-20, 20, (120, 32, 32, 3))
np.save("images.npy", images.clip(0, 255).astype(np.uint8))
np.save("labels.npy", labels)

run = nearkin.train({
    "dataset": "my_data", "root": ".", "data.flip": False, "protocol": "my_protocol", "sampler": "my_sampler",
    "backbone": "my_backbone", "model.head": "my_head", "dim": 8, "loss": "my_loss", "loss.margin": 0.5,
    "miner": "my_miner", "miner.radius": 0.9, "train.batch": 16, "epochs": 1,
})
assert run.done and run.result["test"]["recall@1"] > 0, run.result
assert nearkin.load(run).embed(list(images[:3].clip(0, 255).astype(np.uint8))).shape == (3, 8)

table = nearkin.data.load_table("my_data", ".", flip=False)
assert len(table) == 120 and len(table.classes) == 12 and not table.augment.flip
split = nearkin.protocols.MyProtocol().split(table)
assert (len(split.train), len(split.val), len(split.test.images)) == (40, 20, 60)

with np.load(run.path / "embeddings.npz") as stored:
    found = nearkin.evaluate(stored["embeddings"], stored["labels"], metrics=["my_metric", "recall@1"])
assert 0 <= found.metrics["my_metric"] <= found.metrics["recall@1"] <= 1

shown = CliRunner().invoke(app, ["analyse", "my_analysis", run.hash, "--json"])
assert shown.exit_code == 0, (shown.output, shown.exception)
numbers = json.loads((run.path / "analysis" / "my_analysis.json").read_text())["numbers"]
assert json.loads(shown.stdout) == numbers == nearkin.analysis.MyAnalysis.of(run).numbers
assert 0 < numbers["mean"] <= 1 and numbers["loosest"] in map(str, range(12))
print("used", run.hash)
"""


def test_the_new_parts_work_together(copy):
    assert "used" in python(copy, USE)
