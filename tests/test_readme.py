"""The code of the README runs: Python blocks as they stand, `nearkin` lines with settings that make them quick."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from stores import add_study
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.config.parse import parse_words
from nearkin.config.spec import make_spec
from nearkin.runs.prepare import prepare

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", README.read_text(), re.S)
PYTHON = [code for kind, code in BLOCKS if kind == "python"]
LINES = [line for kind, code in BLOCKS if kind == "bash" for line in code.splitlines() if line.startswith("nearkin ")]
QUICK = ["epochs=1", "train.batch=8", "sampler.per_class=2"]
SMALL = ["data.classes=16", "data.per_class=6"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder as the README assumes it."""
    rng = np.random.default_rng(0)
    for name in ("armchair", "lamp", *(f"thing{i}" for i in range(14))):
        (tmp_path / "my_images" / name).mkdir(parents=True)
        for i in range(1, 4):
            pixels = rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "my_images" / name / f"{i}.jpg")
    (tmp_path / "new_images").mkdir()
    Image.fromarray(pixels).save(tmp_path / "new_images" / "1.jpg")
    np.save(tmp_path / "EMB.npy", rng.normal(size=(40, 4)))
    np.save(tmp_path / "LABELS.npy", np.arange(40) % 8)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_has_code():
    assert len(PYTHON) >= 3
    assert len(LINES) >= 10


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python(code, here, monkeypatch):
    import nearkin

    trained = nearkin.train
    quick = parse_words([*QUICK, "data.size=32"])
    monkeypatch.setattr(nearkin, "train", lambda spec: trained(spec, **quick))
    fit, small = nearkin.fit, {"backbone": "convnet", "losses": ["contrastive"], "workers": 1}
    monkeypatch.setattr(nearkin, "fit", lambda images, minutes: fit(images, minutes=0.01, **small, **quick))
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("line", LINES)
def test_nearkin(line, here, monkeypatch):
    words = shlex.split(line, comments=True)[1:]
    if "cub" in line.lower():  # needs the images: the words at least must be right
        if words[0] == "train":
            assert make_spec(parse_words(words[1:])).data.name == "cub"
        return
    if words[0] == "study":
        assert (README.parent / words[1]).exists()
        return
    if words[0] == "train":
        if "dataset=glyphs" in words:  # as it stands, up to the first step
            asked = prepare(make_spec(parse_words(words[1:])))
            asked.spec.sampler.cls(asked.labels, asked.spec.train.batch, 0, **asked.spec.sampler.params)
        more = [*QUICK, "data.size=32", *(SMALL if "dataset=glyphs" in words else [])]
        quick = {word.partition("=")[0] for word in more}
        words = [word for word in words if word.partition("=")[0] not in quick] + more
    if words[0] == "test":  # the folder here has few images
        words = [word.replace("recall@100", "recall@10") for word in words]
    if words[0] == "fit":
        words[words.index("--minutes") + 1] = "0.01"  # tests/fitting trains
        words += ["--losses", "contrastive", "--workers", "1", "backbone=convnet", *QUICK, "data.size=32"]
    if words[0] == "demo":  # minutes; tests/cli/test_wheel.py plans it
        return
    if "demo" in words:
        import nearkin

        tiny = {"dataset": "folder", "root": "my_images", "dim": 4} | parse_words(QUICK)
        made = {loss: nearkin.train(tiny | {"loss": loss}) for loss in ("triplet", "margin")}
        cells = [{"labels": [loss], "seed": 0, "run": run.hash} for loss, run in made.items()]
        add_study(here / "runs", "demo", ["loss"], cells)
    if "RUN" in words:
        import nearkin

        loss = "hist" if words[0] == "analyse" else "proxy_anchor"
        run = nearkin.train({"dataset": "folder", "root": "my_images", "dim": 4, "loss": loss} | parse_words(QUICK))
        words[words.index("RUN")] = run.hash
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)


def test_every_file_that_is_linked_exists():
    links = re.findall(r"\]\(([^)]+)\)", README.read_text())
    assert links
    own = [link for link in links if not link.startswith("https://")]
    assert [link for link in own if not (README.parent / link).exists()] == []


def test_make_targets_exist():
    makefile = (README.parent / "Makefile").read_text()
    targets = re.findall(r"^make ([\w-]+)", README.read_text(), re.M)
    assert targets
    assert [t for t in targets if f"\n{t}:" not in makefile] == []
    assert sys.version_info >= (3, 11)
