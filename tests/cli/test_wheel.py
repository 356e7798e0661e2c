"""The wheel by itself: everything that a command reads is in it."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ["dataset=glyphs", "data.classes=16", "data.per_class=6", "dim=8", "epochs=1", "train.batch=16"]
PLAN = """
from pathlib import Path
from nearkin import studies
from nearkin.studies.grid import read_study
study = read_study(Path(studies.__path__[0]) / "demo.yaml")
print(len({cell.labels for cell in study.cells if cell.baseline is None}), len(study.cells))
"""


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
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
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source]
    run(sys.executable, "-m", "pip", *build)
    (wheel,) = folder.glob("nearkin-*.whl")
    venv.create(folder / "env", with_pip=False)
    own = next((folder / "env").glob("lib/python*/site-packages"))
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", own, wheel)
    (own / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "env" / "bin" / "python"


def test_it_is_the_wheel_and_not_the_checkout(installed, tmp_path):
    where = run(installed, "-c", "import nearkin; print(nearkin.__file__)", cwd=tmp_path)
    assert str(ROOT) not in where


def test_the_demo_is_planned_from_a_folder_without_a_checkout(installed, tmp_path):
    losses, cells = map(int, run(installed, "-c", PLAN, cwd=tmp_path).split())
    assert losses >= 6
    assert cells == (losses + 2) * 3  # three seeds, two untrained rows


def test_what_it_reads_is_in_it(installed, tmp_path):
    nearkin = [installed, "-m", "nearkin"]
    assert "psomas2020" in run(*nearkin, "list", "recipes", cwd=tmp_path)
    assert "ProxyAnchor" in run(*nearkin, "published", "thesis_t11", cwd=tmp_path)
    run(*nearkin, "train", *TINY, cwd=tmp_path)
    run(*nearkin, "report", "runs", "-o", "page.html", "--no-map", cwd=tmp_path)
    assert "<html" in (tmp_path / "page.html").read_text()
