"""A folder of images that is moved: the run goes on, and is tested, where the images lie now."""

import pytest
from PIL import Image
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError

WORDS = {
    "dataset": "folder",
    "data.size": 16,
    "data.crop": 16,
    "data.resize": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 8,
    "sampler.per_class": 2,
    "epochs": 2,
    "train.batches_per_epoch": 2,
}


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "old"
    for label in range(12):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(6):
            image = Image.effect_noise((20, 20), 10 + 15 * label + number).convert("RGB")
            image.save(folder / f"class{label}" / f"{number}.png")
    return folder


def test_a_paused_run_is_tested_where_its_images_lie_now(images, tmp_path):
    straight = nearkin.train(WORDS | {"root": str(images)}, runs=tmp_path / "straight")
    paused = nearkin.train(WORDS | {"root": str(images)}, runs=tmp_path / "runs", until=1)
    moved = images.rename(tmp_path / "new")
    run = nearkin.train(WORDS | {"root": str(moved)}, runs=tmp_path / "runs")
    assert run.hash == paused.hash == straight.hash
    assert run.result["test"] == straight.result["test"]


def test_a_final_run_is_tested_later_where_its_images_lie_now(images, tmp_path):
    run = nearkin.train(WORDS | {"root": str(images)}, runs=tmp_path / "runs", test=False)
    moved = images.rename(tmp_path / "new")
    with pytest.raises(NearkinError, match="old"):
        nearkin.test(run)
    assert (
        CliRunner().invoke(app, ["test", run.hash, "--root", str(moved), "--runs", str(run.path.parent)]).exit_code == 0
    )
    assert run.tested
    (moved / "class3" / "0.png").unlink()
    with pytest.raises(NearkinError, match="was trained on data"):
        nearkin.test(
            nearkin.train(
                WORDS | {"root": str(_again(moved, tmp_path)), "seed": 1}, runs=tmp_path / "runs", test=False
            ),
            root=moved,
        )


def _again(folder, tmp_path):
    """The folder with all its images."""
    import shutil

    whole = shutil.copytree(folder, tmp_path / "whole")
    Image.effect_noise((20, 20), 55).convert("RGB").save(whole / "class3" / "0.png")
    return whole
