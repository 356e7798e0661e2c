"""`nearkin data show`: counts and sizes against the files, the measurements against the untrained run's own test."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.data.samples import spread
from nearkin.errors import NearkinError
from nearkin.runs import show_data as module
from nearkin.runs.store import Store

WORDS = {"backbone": "convnet", "data.size": 16}
SMALL = {"dataset": "glyphs", "data.classes": 8, "data.per_class": 6}
SIZES = [4, 6, 5, 4, 9, 4, 4, 4]  # images of the classes of the folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of eight classes; images of class i are 20 + i pixels wide and 30 high."""
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for i, count in enumerate(SIZES):
        (tmp_path / "things" / f"kind_{i}").mkdir(parents=True)
        for j in range(count):
            pixels = rng.integers(0, 256, (30, 20 + i, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "things" / f"kind_{i}" / f"{j}.png")
    return tmp_path / "things"


def test_several_data_sets_in_one_table(folder):
    shown = nearkin.show_data(SMALL, folder, **WORDS)
    contents, hardness = (table.records() for table in shown.tables)
    assert [row["data"] for row in contents] == [row["data"] for row in hardness] == ["glyphs", "things"]
    assert contents[1] == {
        "data": "things",
        "images": sum(SIZES),
        "classes": 8,
        "per_class": 5.0,
        "fewest": 4,
        "most": 9,
        "median_size": "24 x 30",
        "shortest": 20,
        "longest": 30,
    }
    assert (contents[0]["images"], contents[0]["classes"], contents[0]["median_size"]) == (48, 8, "16 x 16")
    for row, one in zip(hardness, shown.sets, strict=True):
        tested = nearkin.test(one.run, metrics=module.METRICS)
        assert {key: row[key] for key in module.METRICS} == dict(tested)
        assert row["test_images"] == one.run.result["test_n"]
        assert (one.run.spec.model.head, one.run.spec.train.epochs) == ("none", 0)
    assert "kind_0" not in str(shown)
    assert "things: no weights were given" in str(shown)


def test_the_untrained_run_is_the_baseline_of_studies(folder):
    """It is stored once, under the name that `nearkin train` gives it."""
    shown = nearkin.show_data(SMALL, **WORDS)
    again = nearkin.train({**SMALL, **WORDS, "epochs": 0, "model.head": "none"})
    assert [run.hash for run in Store("runs").runs()] == [shown.sets[0].run.hash] == [again.hash]


def test_the_sheet_spreads_classes_and_images_evenly(folder):
    (one,) = nearkin.show_data(folder, **WORDS).sets
    sheet, table = one.sheet(), one.data.table
    classes = [0, 1, 3, 4, 6, 7]
    assert sheet.rows == [f"kind_{i}" for i in classes]
    assert [len(row) for row in sheet.images] == [min(SIZES[i], 8) for i in classes]
    for label, row in zip(classes, sheet.images, strict=True):
        images = np.flatnonzero(table.labels == label)
        expected = [one.data.pixels[int(i)] for i in spread(images, 8)]
        assert all(np.array_equal(a, b) for a, b in zip(row, expected, strict=True))
    assert spread(np.arange(100), 5).tolist() == [0, 25, 50, 74, 99]


def test_the_command_writes_the_sheets_and_the_same_numbers(folder):
    done = CliRunner().invoke(
        app, ["data", "show", "root.folder=things", "data.size=16", "backbone=convnet", "-o", "out", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert "samples-things.svg" in done.stderr
    files = [file.name for file in (folder.parent / "out").iterdir()]
    assert sorted(files) == ["samples-things.png", "samples-things.svg"]
    with Image.open(folder.parent / "out" / "samples-things.png") as picture:
        assert picture.width == 1000
        assert np.asarray(picture.convert("L")).std() > 20
    told = json.loads(done.stdout.splitlines()[-1])
    shown = nearkin.show_data(folder, **WORDS)
    assert told == {table.name: table.records() for table in shown.tables}


@pytest.mark.parametrize(
    ("data", "words", "message"),
    [
        ((), {}, "no data to show"),
        (("glyfs",), {}, "did you mean glyphs"),
        (("cub", "cars196"), {"root": "here"}, "of which of 2 data sets"),
        (("cub",), {"root.cub": "nowhere"}, "nowhere"),
        (("glyphs",), {"sizes": 3}, "unknown key 'sizes'"),
    ],
)
def test_what_cannot_be_shown_is_said(folder, data, words, message):
    with pytest.raises(NearkinError, match=message):
        nearkin.show_data(*data, **words)


def test_glyphs_and_networks_that_were_chosen_are_left_alone():
    from nearkin.models.start import starting_network

    assert starting_network({"data.name": "glyphs"}) == starting_network({"model.backbone": "resnet50"}) == ({}, [])
    network, said = starting_network({"data.name": "folder"})
    assert bool(network) == ("ImageNet" in said[0])
