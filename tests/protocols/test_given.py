"""Rows that a file lists, and queries against a gallery."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.data import Table
from nearkin.errors import NearkinError
from nearkin.protocols import MLRC, File, FixedVal, QueryGallery, write_split


def make_table(sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return Table(
        labels=labels,
        classes=tuple(f"c{c}" for c in range(len(sizes))),
        images=np.arange(len(labels) * 3, dtype=np.uint8).reshape(-1, 1, 1, 3),
    )


@pytest.mark.parametrize("protocol", [FixedVal(), MLRC(fold=2), QueryGallery()], ids=["fixed_val", "mlrc", "gallery"])
def test_a_split_comes_back_from_its_file(tmp_path, protocol):
    table = make_table([5] * 24)
    split = protocol.split(table)
    file = tmp_path / "split.json"
    file.write_text(write_split(split, table, "any"))
    again = File(path=file).split(table)
    assert again.hash() == split.hash() == json.loads(file.read_text())["hash"]
    assert again.to_dict() == split.to_dict()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told | {"train": told["train"] + told["query"][:1]}, "a row in two places"),
        (lambda told: told | {"train": [*told["train"], 999]}, "names row 999, but the data have 120 rows"),
        (lambda told: told | {"data": "0" * 12}, "divides data 000000000000, but these are data"),
        (lambda told: told | {"train": []}, "leaves 0 training"),
        (lambda told: {"train": [1]}, "train, val, query and gallery are needed"),
        (lambda told: told | {"val": "all"}, "is not a list of rows"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, change, said):
    table = make_table([5] * 24)
    file = tmp_path / "split.json"
    file.write_text(json.dumps(change(json.loads(write_split(FixedVal().split(table), table, "any")))))
    with pytest.raises(NearkinError, match=said):
        File(path=file).split(table)


def test_no_file_and_no_json_are_refused(tmp_path):
    with pytest.raises(NearkinError, match=r"protocol\.path=FILE"):
        File()
    with pytest.raises(NearkinError, match="cannot be read"):
        File(path=tmp_path / "none.json").split(make_table([5] * 24))
    (tmp_path / "text").write_text("train")
    with pytest.raises(NearkinError, match="is not a list of rows"):
        File(path=tmp_path / "text").split(make_table([5] * 24))


def test_queries_and_gallery_share_every_class_that_has_two_images():
    sizes = [4] * 12 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    table = make_table(sizes)
    split = QueryGallery(queries=0.3).split(table)
    test = sorted({int(c) for c in table.labels[split.test.images]})
    assert not set(split.test.query) & set(split.test.gallery)
    for c in test:
        asked, held = ((table.labels[rows] == c).sum() for rows in (split.test.query, split.test.gallery))
        wanted = min(max(round(0.3 * sizes[c]), 1), sizes[c] - 1) if sizes[c] > 1 else 0
        assert (asked, held) == (wanted, sizes[c] - wanted)
    assert QueryGallery(seed=1).split(table).hash() != QueryGallery().split(table).hash()
    with pytest.raises(NearkinError, match=r"protocol\.queries=1\.0"):
        QueryGallery(queries=1.0)


def test_the_command_prints_and_writes(tmp_path):
    file = tmp_path / "rows.json"
    words = ["dataset=glyphs", "data.classes=24", "data.per_class=4", "protocol=mlrc", "protocol.fold=1"]
    found = CliRunner().invoke(app, ["data", "split", *words, "-o", str(file)])
    assert found.exit_code == 0, found.output
    told = json.loads(file.read_text())
    assert f"split {told['hash']}" in found.output
    assert "train 36 images of 9 classes" in " ".join(found.output.split())
    from_file = ["dataset=glyphs", "data.classes=24", "data.per_class=4", "protocol=file", f"protocol.path={file}"]
    again = CliRunner().invoke(app, ["data", "split", *from_file, "--json"])
    assert json.loads(again.output)["hash"] == told["hash"]
