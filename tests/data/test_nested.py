"""Class folders inside folders: which folder is a class, how classes are called, and that nothing vanishes silently."""

import json

import pytest
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.config.spec import make_spec, stored_spec
from nearkin.data import data_hash, load_table, verify
from nearkin.errors import NearkinError
from nearkin.runs.defaults import resolve
from nearkin.runs.run import Run
from nearkin.runs.store import Store


def laid(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(path.encode())
    return root


def classes_of(root, rule=None):
    """Path -> class."""
    table = load_table("folder", root, classes_from=rule)
    return {table.shown(row): table.classes[label] for row, label in enumerate(table.labels)}


SHOP = ("Fruit/Apple/Pink-Lady/1.jpg", "Fruit/Apple/Gala/2.jpg", "Fruit/Banana/3.jpg", "Vegetables/Leek/4.jpg")


def test_leaves_are_classes(tmp_path):
    root = laid(tmp_path / "x", *SHOP)
    assert list(classes_of(root).values()) == ["Gala", "Pink-Lady", "Banana", "Leek"]
    assert load_table("folder", root).classes == ("Banana", "Gala", "Leek", "Pink-Lady")
    assert classes_of(root, "leaf") == classes_of(root)


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("top", ["Fruit", "Fruit", "Fruit", "Vegetables"]),
        ("depth:1", ["Fruit", "Fruit", "Fruit", "Vegetables"]),
        ("depth:2", ["Apple", "Apple", "Banana", "Leek"]),
        ("depth:3", ["Gala", "Pink-Lady", "Banana", "Leek"]),
    ],
)
def test_the_rule_may_be_said(tmp_path, rule, names):
    assert list(classes_of(laid(tmp_path / "x", *SHOP), rule).values()) == names


@pytest.mark.parametrize(
    "rule", ["", "leaves", "depth", "depth:", "depth:0", "depth:-1", "depth:1.5", "depth:x", "Leaf"]
)
def test_other_rules_are_refused(tmp_path, rule):
    with pytest.raises(NearkinError, match=r"data\.classes_from=.*choices: leaf, top, depth:N") as error:
        load_table("folder", laid(tmp_path / "x", *SHOP), classes_from=rule)
    assert f"data.classes_from={rule}" in str(error.value)


def test_deeper_than_all_images_is_refused(tmp_path):
    with pytest.raises(
        NearkinError, match=r"depth:4: .* 3 folders deep at most; choices: leaf, top, depth:1 to depth:3"
    ):
        load_table("folder", laid(tmp_path / "x", *SHOP), classes_from="depth:4")


@pytest.mark.parametrize("twin", ["Tools/Apple/1.jpg", "Tools/apple/1.jpg", "Tools/Apple /1.jpg"])
def test_folders_of_one_name_are_named_by_their_paths(tmp_path, twin):
    root = laid(tmp_path / "x", "Fruit/Apple/1.jpg", "Fruit/Pear/1.jpg", twin)
    assert set(classes_of(root).values()) == {"Fruit/Apple", "Fruit/Pear", twin.removesuffix("/1.jpg")}


def test_splits_hold_nested_classes(tmp_path):
    root = laid(tmp_path / "x", *(f"{split}/{path}" for split in ("train", "test") for path in SHOP))
    table = load_table("folder", root)
    assert table.classes == ("Banana", "Gala", "Leek", "Pink-Lady")
    assert (table.split == "train").sum() == 4
    assert load_table("folder", root, classes_from="top").classes == ("Fruit", "Vegetables")


def test_flat_folders_keep_their_hash(tmp_path, cache_folder):
    """These hashes were made when classes came from the top folders alone."""
    root = laid(tmp_path / "x", "a/1.jpg", "a/2.png", "b/3.jpg")
    assert data_hash(load_table("folder", root)) == "c91534645aa5ab27"
    laid(root, "b/deep/4.jpg")
    assert data_hash(load_table("folder", root, classes_from="top")) == "c1eed063f14e35ff"
    assert data_hash(load_table("folder", root)) == "c1eed063f14e35ff"  # images at two depths
    (root / "b" / "3.jpg").rename(root / "b" / "deep" / "3.jpg")
    (root / "b" / "deep" / "4.jpg").unlink()
    assert data_hash(load_table("folder", root)) == "8007ecf26743614a"  # one folder in each class folder
    split = laid(tmp_path / "y", "train/a/1.jpg", "train/b/2.png", "test/c/3.jpg", "test/d/4.jpg")
    assert data_hash(load_table("folder", split)) == "46e70e90903dcaef"


def test_one_folder_below_the_root_may_be_meant(tmp_path):
    root = laid(tmp_path / "x", "Fruit/Apple/1.jpg", "Fruit/Pear/2.jpg")
    with pytest.raises(NearkinError, match=r"did you mean root=.*/Fruit\? .*data\.classes_from=leaf, top or depth:N"):
        load_table("folder", root)
    assert load_table("folder", root, classes_from="leaf").classes == ("Apple", "Pear")


# -- images at two depths ---------------------------------------------------------------------------------------


def test_images_at_two_depths_are_said(tmp_path, picture, capsys):
    for seed, path in enumerate((*SHOP, *SHOP, "Fruit/loose.jpg", "Vegetables/loose.jpg")):
        picture(tmp_path / "x" / f"{path[:-4]}{seed}.jpg", seed)
    report = verify(load_table("folder", tmp_path / "x"))
    (problem,) = (line for line in report.problems if "classes_from" in line)
    assert "images lie in Fruit and in a folder inside it, Fruit/" in problem
    assert "are taken as 2 classes" in problem
    assert "data.classes_from=top says that this is meant" in problem
    assert "data.classes_from=leaf makes 6" in problem
    assert "data.classes_from=depth:N" in problem
    assert verify(load_table("folder", tmp_path / "x", classes_from="top")).ok
    spec = make_spec({"dataset": "folder", "root": str(tmp_path / "x"), "dim": 4, "epochs": 0, "protocol": "within"})
    nearkin.runs.data.read_table(resolve(spec).data)
    assert "data.classes_from=top says that this is meant" in capsys.readouterr().err


# -- what is not read -------------------------------------------------------------------------------------------

LEFT = ("loose.jpg", "readme.txt", "a/notes.txt", "a/noending", "b/shot.cr2", "b/shot2.CR2")


@pytest.fixture
def untidy(tmp_path, picture):
    for seed, path in enumerate(("a/1.png", "a/2.png", "b/1.png", "b/2.png")):
        picture(tmp_path / "x" / path, seed)
    (tmp_path / "x" / "empty" / "inner").mkdir(parents=True)
    return laid(tmp_path / "x", *LEFT, "notes/list.csv", ".hidden/x.txt", "a/.DS_Store")


def test_what_is_not_read_is_counted(untidy):
    report = verify(load_table("folder", untidy))
    assert report.ok
    assert report.unread == {
        "image in no class folder": ["loose.jpg"],
        ".txt": ["readme.txt", "a/notes.txt"],
        "file without an ending": ["a/noending"],
        ".cr2": ["b/shot.cr2", "b/shot2.CR2"],
        ".csv": ["notes/list.csv"],
    }
    assert report.bare == ["empty", "notes"]
    (warning,) = report.warnings
    for words in (
        "not read: ",
        "1 image in no class folder (loose.jpg)",
        "2 .txt files (readme.txt, a/notes.txt)",
        "1 file without an ending (a/noending)",
        "2 .cr2 files",
        "2 folders without an image (empty, notes)",
    ):
        assert words in warning
    told = json.loads(json.dumps(report.to_dict()))
    assert told["unread"][".cr2"] == ["b/shot.cr2", "b/shot2.CR2"]
    assert told["classes_from"] == "top"


def test_loose_images_in_a_split_folder_are_counted(tmp_path, picture):
    for seed, path in enumerate(("train/a/1.png", "train/a/2.png", "test/b/1.png", "test/b/2.png", "test/loose.png")):
        picture(tmp_path / "x" / path, seed)
    assert verify(load_table("folder", tmp_path / "x")).unread == {"image in no class folder": ["test/loose.png"]}


def test_training_says_what_is_not_read(untidy, capsys):
    spec = make_spec({"dataset": "folder", "root": str(untidy), "dim": 4, "epochs": 0})
    nearkin.runs.data.read_table(resolve(spec).data)
    assert "1 image in no class folder (loose.jpg)" in capsys.readouterr().err


def test_a_root_of_other_files(tmp_path):
    root = laid(tmp_path / "x", "a/film.mp4", "b/film.mp4")
    with pytest.raises(NearkinError, match=r"it holds no images \(not read: 2 \.mp4 files"):
        load_table("folder", root)


def test_names_that_differ_in_case_or_blanks_only(tmp_path, picture):
    for seed, name in enumerate(("Apple", "apple", "pear ", "pear", "fig") * 2):
        picture(tmp_path / "x" / name / f"{seed}.png", seed)
    report = verify(load_table("folder", tmp_path / "x"))
    assert report.alike_classes == [["Apple", "apple"], ["pear", "pear "]]
    (warning,) = report.warnings
    assert (
        "2 groups of classes whose names differ in case or blanks only: 'Apple' = 'apple', 'pear' = 'pear '" in warning
    )


# -- what verify shows ------------------------------------------------------------------------------------------


def command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_verify_shows_the_tree(tmp_path, picture):
    for seed, path in enumerate((*SHOP, *SHOP)):
        picture(tmp_path / "x" / f"{path[:-4]}{seed}.png", seed)
    done = command("data", "verify", "folder", "--root", tmp_path / "x")
    assert done.exit_code == 0, done.output
    assert "data.classes_from=leaf" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["Fruit", "6", "3"] in lines
    assert ["Pink-Lady", "2", "1"] in lines
    top = command("data", "verify", "folder", "data.classes_from=top", "--root", tmp_path / "x")
    assert ["Fruit", "6", "1"] in [line.split() for line in top.stdout.splitlines()]
    assert "Pink-Lady" not in top.stdout
    refused = command("data", "verify", "folder", "classes=3", "--root", tmp_path / "x")
    assert "did you mean classes_from" in str(refused.exception)


@pytest.mark.parametrize("nested", [False, True])
def test_many_classes_are_cut(tmp_path, picture, nested):
    for c in range(90):
        place = f"{'AB'[c % 2]}/c{c:02d}" if nested else f"c{c:02d}"
        for i in range(2):
            picture(tmp_path / "x" / place / f"{i}.png", seed=2 * c + i, height=8, width=8)
    report = verify(load_table("folder", tmp_path / "x"))
    table = next(table for table in report.tables if table.name == "tree")
    assert len(table.rows) <= 20
    more = [row for row in table.rows if "more" in row[0]]
    assert len(more) == (2 if nested else 1)
    leaves = [row for row in table.rows if row[2] == 1 or "more" in row[0]]
    assert sum(row[1] for row in leaves) == 180
    assert sum(row[2] for row in leaves) == 90


# -- runs -------------------------------------------------------------------------------------------------------

WORDS = {"dataset": "folder", "dim": 4, "epochs": 0, "protocol": "standard", "backbone": "convnet", "data.size": 16}


@pytest.fixture
def shop(tmp_path, picture):
    for c in range(10):
        for i in range(3):
            picture(tmp_path / "x" / f"{'AB'[c % 2]}/c{c}" / f"{i}.png", seed=3 * c + i)
    return tmp_path / "x"


def test_the_rule_counts_by_its_effect(shop, tmp_path):
    def trained(**more):
        return nearkin.train(WORDS | {"root": str(shop), **more}, runs=tmp_path / "runs", test=False)

    assert trained().hash == trained(**{"data.classes_from": "leaf"}).hash
    assert trained().hash == trained(**{"data.classes_from": "depth:2"}).hash
    assert trained().spec.data.params["classes_from"] is None


def test_a_run_of_before_is_read_as_before(shop, tmp_path):
    """A stored spec without the setting was read with top."""
    words = WORDS | {"root": str(shop), "data.classes_from": "top", "protocol": "within"}
    run = nearkin.train(words, runs=tmp_path / "runs", test=False)
    text = (run.path / "spec.yaml").read_text()
    assert text.count("classes_from: top") == 1
    (run.path / "spec.yaml").write_text(text.replace("    classes_from: top\n", ""))
    (run.path / "files.json").unlink()  # its sums are those of the file that was changed
    before = Store(tmp_path / "runs").find(run.hash)
    assert "classes_from" not in before.stored["data"]
    assert before.spec.data.params["classes_from"] == "top"
    assert set(nearkin.test(before)) == set(nearkin.test(run))
    assert nearkin.train(words, runs=tmp_path / "runs").hash == run.hash
    assert stored_spec(before.stored).data.params.get("classes_from") is None  # a task of a study is no stored run


def test_a_stored_run_may_hold_the_null(shop, tmp_path):
    run = nearkin.train(WORDS | {"root": str(shop)}, runs=tmp_path / "runs")
    assert Run(run.path).stored["data"]["classes_from"] is None
    assert Run(run.path).spec.data.params["classes_from"] is None
    assert len(run.result["test"])
