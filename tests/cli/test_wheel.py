"""The wheel by itself: everything that a command reads is in it."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ["dataset=glyphs", "data.classes=16", "data.per_class=6", "dim=8", "epochs=1", "train.batch=16"]
COMMANDS = [
    ["list", "recipes"],
    ["published", "thesis_t11"],
    ["train", *TINY],
    ["report", "runs", "-o", "page.html", "--no-map"],
]
PROGRAM = f"""
from pathlib import Path
import nearkin
from nearkin import studies
from nearkin.cli.app import app
from nearkin.studies.grid import read_study
study = read_study(Path(studies.__path__[0]) / "demo.yaml")
losses = {{cell.labels for cell in study.cells if cell.baseline is None}}
print(nearkin.__file__, len(losses), len(study.cells))
for words in {COMMANDS}:
    app(words, standalone_mode=False)
"""


def run(*words, **more):
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=alone, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An empty environment with the wheel in it. Its dependencies are those of this one, by path; what is installed
    here as nearkin, in editable form, is not found that way."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    tracked = run("git", "ls-files", "pyproject.toml", "README.md", "LICENSE", "src", cwd=ROOT).split()
    for name in tracked:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-c", f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})", cwd=source)
    (wheel,) = folder.glob("nearkin-*.whl")
    venv.create(folder / "env", with_pip=False)
    own = next((folder / "env").glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(own)
    (own / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "env" / "bin" / "python"


def test_what_it_reads_is_in_it(installed, tmp_path):
    """In one process, from a folder without a checkout."""
    said = run(installed, "-c", PROGRAM, cwd=tmp_path)
    where, losses, cells = said.splitlines()[0].split()
    assert str(ROOT) not in where  # the wheel, not the checkout
    assert int(losses) >= 6
    assert int(cells) == (int(losses) + 2) * 3  # three seeds, two untrained rows
    assert "psomas2020" in said
    assert "ProxyAnchor" in said
    assert "<html" in (tmp_path / "page.html").read_text()
