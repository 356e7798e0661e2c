"""Leaving images out: what `dedupe` lists, what `data.exclude` does with a list, and that nothing is ever deleted."""

import json
import shutil

import numpy as np
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.config.spec import make_spec
from nearkin.data import Table, data_hash, dedupe, exclude, load_table, verify
from nearkin.errors import NearkinError
from nearkin.runs.defaults import resolve
from nearkin.runs.prepare import read_data


def command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def names(table):
    return [table.shown(i) for i in range(len(table))]


@pytest.fixture
def root(tmp_path, picture):
    """Ten classes of four images; one image twice in c0, one in c1 and c2."""
    for c in range(10):
        for i in range(4):
            picture(tmp_path / "x" / f"c{c}" / f"{i}.png", seed=10 * c + i)
    for copy, of in (("c0/copy.png", "c0/1.png"), ("c1/copy.png", "c1/2.png"), ("c2/copy.png", "c1/2.png")):
        shutil.copy(tmp_path / "x" / of, tmp_path / "x" / copy)
    return tmp_path / "x"


LEFT_OUT = ["c0/copy.png", "c1/2.png", "c1/copy.png", "c2/copy.png"]


def test_all_but_the_first_of_a_class_and_all_across_classes(root):
    groups = dedupe(load_table("folder", root))
    assert [(group.stays, group.left_out, group.classes) for group in groups] == [
        ("c0/1.png", ["c0/copy.png"], ["c0"]),
        (None, ["c1/2.png", "c1/copy.png", "c2/copy.png"], ["c1", "c2"]),
    ]


def test_the_list_goes_through_a_file(root, tmp_path):
    before = {path: path.read_bytes() for path in root.rglob("*.png")}
    file = tmp_path / "out.txt"
    words = ("data", "dedupe", "folder", "--root", root, "-o", file)
    done = command(*words)
    assert done.exit_code == 0, done.output
    assert f"data.exclude={file}" in done.stdout.replace("\n", "")
    assert [line for line in file.read_text().splitlines() if line and line[0] != "#"] == LEFT_OUT
    assert before == {path: path.read_bytes() for path in root.rglob("*.png")}
    table = load_table("folder", root)
    left = exclude(table, file)
    assert names(left) == [name for name in names(table) if name not in LEFT_OUT]
    assert left.classes == table.classes
    assert data_hash(left) != data_hash(table)
    assert verify(table).ok is False
    assert verify(left).problems == verify(left).warnings == []
    checked = command("data", "verify", "folder", "--root", root, "--exclude", file, "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)["images"] == 39
    assert command(*words).exit_code == 0  # the same list again


def test_a_root_relative_to_here(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = load_table("folder", "x")
    assert [path for group in dedupe(table) for path in group.left_out] == LEFT_OUT
    (tmp_path / "out.txt").write_text("\n".join([*LEFT_OUT, str(root / "c3" / "0.png")]))
    assert len(exclude(table, "out.txt")) == 38


def test_without_a_file_it_is_printed(root):
    done = command("data", "dedupe", "folder", "--root", root)
    assert [line for line in done.stdout.splitlines() if line and line[0] != "#"] == LEFT_OUT
    told = json.loads(command("data", "dedupe", "folder", "--root", root, "--json").stdout)
    assert [path for group in told["groups"] for path in group["left_out"]] == told["exclude"] == LEFT_OUT


def test_no_duplicates(tmp_path, picture):
    for i in range(4):
        picture(tmp_path / "x" / "ab"[i % 2] / f"{i}.png", seed=i)
    table = load_table("folder", tmp_path / "x")
    assert dedupe(table) == []
    assert command("data", "dedupe", "folder", "--root", tmp_path / "x", "-o", tmp_path / "out.txt").exit_code == 0
    assert names(exclude(table, tmp_path / "out.txt")) == names(table)


def test_a_file_that_is_something_else_is_not_overwritten(root, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for output, said in ((tmp_path / "notes.txt", "exists"), (tmp_path, "is a folder")):
        done = command("data", "dedupe", "folder", "--root", root, "-o", output)
        assert isinstance(done.exception, NearkinError)
        assert said in str(done.exception)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_names_that_look_like_comments_or_blanks(tmp_path, picture):
    strange = ("#a/1.png", "#a/2.png", " b/1.png", " b/2.png", "c /x .png", "c /y#1.png", "d/\udcff1.png")
    for name in (*strange, "d/\udcff2.png"):
        picture(tmp_path / "x" / name, seed=ord(name[1]))
    table = load_table("folder", tmp_path / "x")
    file = tmp_path / "out.txt"
    assert command("data", "dedupe", "folder", "--root", tmp_path / "x", "-o", file).exit_code == 0
    assert names(exclude(table, file)) == [" b/1.png", "#a/1.png", "c /x .png", "d/\udcff1.png"]


def test_rows_of_a_csv(tmp_path, picture):
    for name in ("a.png", "b.png", "deep/c.png"):
        picture(tmp_path / "x" / name)
    picture(tmp_path / "elsewhere.png")
    rows = ["a.png,x", "./a.png,x", "b.png,x", "deep/../deep/c.png,x", f"{tmp_path}/elsewhere.png,x", "lost.png,x"]
    (tmp_path / "x" / "list.csv").write_text("\n".join(["path,label", *rows]))
    table = load_table("csv", tmp_path / "x")
    (group,) = dedupe(table)
    assert group.stays == "a.png"  # listed twice: to leave the path out would lose it
    assert group.left_out == ["b.png", "deep/../deep/c.png", str(tmp_path / "elsewhere.png")]
    (tmp_path / "out.txt").write_text(f"# mine\n\n  b.png  \r\ndeep/c.png\n{tmp_path}/elsewhere.png")
    assert names(exclude(table, tmp_path / "out.txt")) == ["a.png", "a.png", "lost.png"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("c0/1.png\nc0/nope.png\n", r"1 path .*'c0/nope\.png'.*relative to"),
        ("x/c0/1.png", r"'x/c0/1\.png'"),
        ("c0\n", "'c0'"),
        (None, "cannot be read"),
        ("\x00\x1b[31m\udcff\n", "'"),
    ],
)
def test_a_list_that_is_wrong(root, tmp_path, text, said):
    file = tmp_path / "out.txt"
    if text is not None:
        file.write_text(text, errors="surrogateescape")
    with pytest.raises(NearkinError, match=said) as error:
        exclude(load_table("folder", root), file)
    assert f"data.exclude={file}" in str(error.value)
    assert str(error.value).isprintable()


def test_all_left_out_or_no_files_at_all(root, tmp_path):
    table = load_table("folder", root)
    (tmp_path / "out.txt").write_text("\n".join(names(table)))
    with pytest.raises(NearkinError, match="leaves out all 43 images"):
        exclude(table, tmp_path / "out.txt")
    arrays = Table(np.zeros(2, np.int64), ("a",), images=np.zeros((2, 4, 4, 3), np.uint8), name="glyphs")
    with pytest.raises(NearkinError, match="glyphs"):
        exclude(arrays, tmp_path / "out.txt")
    with pytest.raises(NearkinError, match="glyphs"):
        dedupe(arrays)


# -- runs -------------------------------------------------------------------------------------------------------


def test_a_run_does_not_contain_the_rows(root, tmp_path):
    (tmp_path / "out.txt").write_text("\n".join(LEFT_OUT))
    words = {
        "dataset": "folder",
        "root": str(root),
        "epochs": 0,
        "dim": 4,
        "backbone": "convnet",
        "data.size": 16,
        "data.resize": 16,
        "data.crop": 16,
        "protocol": "standard",
    }
    less = words | {"data.exclude": str(tmp_path / "out.txt")}
    plain, left = (nearkin.train(each, runs=tmp_path / "runs") for each in (words, less))
    assert plain.hash != left.hash
    assert plain.head()["data_hash"] != left.head()["data_hash"]
    table = load_table("folder", root)
    assert left.head()["data_hash"] == data_hash(exclude(table, tmp_path / "out.txt"))
    tested = [set(pyarrow.parquet.read_table(run.path / "test.parquet")["path"].to_pylist()) for run in (plain, left)]
    assert tested[0] & set(LEFT_OUT)
    assert not tested[1] & set(LEFT_OUT)
    data = read_data(resolve(make_spec(less)).data)
    assert not set(names(data.table)) & set(LEFT_OUT)
    assert len(data.images) == len(data.table) == 39


def test_the_list_counts_by_its_effect(tmp_path):
    def hashed(**more):
        return resolve(make_spec({"dataset": "folder", "root": "x", **more})).hash("d", "s")

    assert hashed() == hashed(**{"data.exclude": "one.txt"}) == hashed(**{"data.exclude": "two.txt"})
