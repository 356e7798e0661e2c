"""Looking for images: links, hidden folders, folders that vanish or may not be read; the same for all who look."""

import os

import pytest

from nearkin.data import images_from, load_table, scan, verify
from nearkin.errors import NearkinError


def laid(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


def names(root, paths):
    return [path.relative_to(root).as_posix() for path in paths]


def seen_by(looks, root):
    """What `folder`, or `nearkin embed`, finds in a root."""
    return names(root, load_table("folder", root).paths if looks == "folder" else images_from(root))


everyone = pytest.mark.parametrize("looks", ["folder", "embed"])


@everyone
def test_links_to_files_and_folders_are_followed(tmp_path, looks):
    laid(tmp_path / "store", "more/2.jpg", "more/deep/3.jpg", "4.jpg")
    root = laid(tmp_path / "x", "a/1.jpg", "b/5.jpg")
    (root / "a" / "link").symlink_to(tmp_path / "store" / "more")
    (root / "b" / "4.jpg").symlink_to(tmp_path / "store" / "4.jpg")
    (root / "c").symlink_to(tmp_path / "store")
    assert seen_by(looks, root) == [
        "a/1.jpg",
        "a/link/2.jpg",
        "a/link/deep/3.jpg",
        "b/4.jpg",
        "b/5.jpg",
        "c/4.jpg",
        "c/more/2.jpg",
        "c/more/deep/3.jpg",
    ]


@everyone
def test_links_make_no_endless_loops(tmp_path, looks):
    root = laid(tmp_path / "x", "a/1.jpg", "a/deep/2.jpg", "b/3.jpg")
    for link, target in (("a/self", "a"), ("a/deep/up", "a"), ("b/root", "."), ("b/above", ".."), ("again", ".")):
        (root / link).symlink_to((root / target).resolve(), target_is_directory=True)
    (root / "a" / "round").symlink_to("round")  # a link to itself
    assert seen_by(looks, root) == ["a/1.jpg", "a/deep/2.jpg", "b/3.jpg"]


@everyone
def test_links_to_each_other_are_followed_once(tmp_path, looks):
    """Twelve folders, each with a link to every other: 12! paths, if each path were followed."""
    root = tmp_path / "x"
    for i in range(12):
        laid(root, f"a/{i:02d}/{i}.jpg")
    for i in range(12):
        for j in range(12):
            (root / "a" / f"{i:02d}" / f"to{j:02d}").symlink_to(root / "a" / f"{j:02d}")
    laid(root, "b/x.jpg")
    assert seen_by(looks, root) == [*(f"a/{i:02d}/{i}.jpg" for i in range(12)), "b/x.jpg"]


@everyone
def test_what_is_hidden_is_ignored(tmp_path, looks):
    root = laid(tmp_path / "x", "a/1.png", "a/.thumbs/1.png", "a/deep/.x/y/2.png", "a/._1.png", ".git/3.png", "b/4.png")
    assert seen_by(looks, root) == ["a/1.png", "b/4.png"]


@everyone
def test_a_hidden_root_is_meant(tmp_path, looks):
    assert seen_by(looks, laid(tmp_path / ".x", "a/1.png", "b/2.png")) == ["a/1.png", "b/2.png"]


@everyone
def test_only_files_are_images(tmp_path, looks):
    root = laid(tmp_path / "x", "a/1.png", "a/folder.png/2.png", "b/3.png")
    os.mkfifo(root / "a" / "pipe.png")  # reading it would wait for ever
    (root / "b" / "lost.png").symlink_to("nowhere.png")  # left for `verify` to tell
    assert seen_by(looks, root) == ["a/1.png", "a/folder.png/2.png", "b/3.png", "b/lost.png"]


def test_verify_tells_links_that_lead_nowhere(tmp_path, picture):
    for i in range(4):
        picture(tmp_path / "x" / "ab"[i % 2] / f"{i}.png", seed=i)
    (tmp_path / "x" / "a" / "lost.png").symlink_to("nowhere.png")
    (tmp_path / "x" / "a" / "round.png").symlink_to("round.png")
    report = verify(load_table("folder", tmp_path / "x"))
    assert report.missing == ["a/lost.png", "a/round.png"]


@pytest.fixture
def failing(monkeypatch):
    """failing(folder, error): reading this folder raises the error."""
    scandir = os.scandir
    told = {}

    def read(folder):
        if str(folder) in told:
            raise told[str(folder)]
        return scandir(folder)

    monkeypatch.setattr(scan.os, "scandir", read)
    return lambda folder, error: told.__setitem__(str(folder), error)


@everyone
@pytest.mark.parametrize("kind", [FileNotFoundError, ProcessLookupError, NotADirectoryError])
def test_a_folder_that_vanishes_is_skipped(tmp_path, failing, looks, kind):
    error = kind(2, "gone")
    root = laid(tmp_path / "x", "a/1.png", "a/proc/2.png", "b/3.png", "c/4.png")
    failing(root / "a" / "proc", error)
    failing(root / "c", error)
    assert seen_by(looks, root) == ["a/1.png", "b/3.png"]


@everyone
@pytest.mark.parametrize("where", ["a/deep", "a", "."])
def test_a_folder_that_may_not_be_read_is_named(tmp_path, failing, looks, where):
    root = laid(tmp_path / "x", "a/1.png", "a/deep/2.png", "b/3.png")
    failing(root / where, PermissionError(13, "Permission denied"))
    with pytest.raises(NearkinError, match=rf"{(root / where)} cannot be read: Permission denied") as error:
        seen_by(looks, root)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["folder", "csv", "cub", "cars196", "sop", "inshop", "imagenet"])
def test_a_root_that_may_not_be_looked_at(tmp_path, monkeypatch, name):
    stat = os.stat

    def refuse(path, *args, **options):
        if str(path).startswith(str(tmp_path / "x")):
            raise PermissionError(13, "Permission denied")
        return stat(path, *args, **options)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(NearkinError, match=rf"root={tmp_path / 'x'} cannot be read: Permission denied"):
        load_table(name, tmp_path / "x")
