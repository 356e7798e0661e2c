import errno
import io
import multiprocessing
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nearkin.data import Table, cache, cache_dir, data_hash, decoded, hashing, journal, load_table
from nearkin.data.images import read_image
from nearkin.data.transforms import shorter_side
from nearkin.errors import NearkinError


@pytest.fixture
def table(tmp_path, picture):
    """Six images of six shapes in three classes."""
    for i, name in enumerate(("a/0.png", "a/1.png", "b/2.png", "b/3.png", "c/4.png", "c/5.jpg")):
        picture(tmp_path / "pictures" / name, seed=i, height=20 + i, width=40 - 3 * i)
    return load_table("folder", tmp_path / "pictures")


def left_behind(folder):
    """All but the remembered hashes and the lock files, which stay so that nobody locks a file already removed."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if path.parent.name != "hashes" and path.suffix != ".lock"]


def caches(folder):
    return [path for path in (folder / "decoded").iterdir() if path.suffix != ".lock"]


def test_where(monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", "/somewhere/own")
    assert cache_dir() == Path("/somewhere/own")
    monkeypatch.delenv("NEARKIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == Path("/xdg/nearkin")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "nearkin"


# -- the hash ---------------------------------------------------------------------------------------------------


def test_the_hash_covers_content_paths_labels_and_splits(table, tmp_path):
    first = data_hash(table)
    assert len(first) == 16
    assert int(first, 16) >= 0
    assert data_hash(table) == first
    other = [
        replace(table, labels=table.labels[::-1].copy()),
        replace(table, classes=("a", "b", "d")),
        replace(table, paths=table.paths[::-1]),
        replace(table, columns={"split": np.repeat("test", 6)}),
    ]
    assert len({first, *map(data_hash, other)}) == 5


def test_the_hash_does_not_depend_on_where_the_data_lie(table, tmp_path):
    first = data_hash(table)
    (tmp_path / "pictures").rename(tmp_path / "elsewhere")
    assert data_hash(load_table("folder", tmp_path / "elsewhere")) == first


def test_a_file_is_read_once_until_it_changes(table, monkeypatch):
    first = data_hash(table)
    read = []
    content = hashing._content
    monkeypatch.setattr(hashing, "_content", lambda path: read.append(path) or content(path))
    assert data_hash(table) == first
    assert read == []
    changed = table.paths[2]
    data = bytearray(changed.read_bytes())
    data[-20] ^= 1  # as long as before
    changed.write_bytes(data)
    os.utime(changed, ns=(1, 1))
    assert data_hash(table) != first
    assert read == [str(changed)]


@pytest.mark.parametrize("saved", [2, 100])
def test_after_ctrl_c_no_file_is_hashed_twice(table, cache_folder, monkeypatch, saved):
    first = data_hash(table)
    shutil.rmtree(cache_folder)
    content, read = hashing._content, []

    def some(path):
        if len(read) == 4:
            raise KeyboardInterrupt
        read.append(path)
        return content(path)

    monkeypatch.setattr("os.cpu_count", lambda: 1)  # in order
    monkeypatch.setattr(hashing, "_content", some)
    monkeypatch.setattr(hashing, "SAVED", saved)
    with pytest.raises(KeyboardInterrupt):
        data_hash(table)
    again = []
    monkeypatch.setattr(hashing, "_content", lambda path: again.append(path) or content(path))
    assert data_hash(table) == first
    assert len(again) == 2
    assert not {*again} & {*read}


def test_the_name_of_a_file_below_the_root():
    """Against the slow way of pathlib, for roots of all kinds."""
    table = Table(np.zeros(1, np.int64), ("a",), paths=(Path("x"),))
    for root in (None, Path("."), Path("/"), Path("/a"), Path("/a/b"), Path("a"), Path("../a"), Path("/a.b/")):
        for path in map(Path, ("/a/b/c.jpg", "/ab/c.jpg", "a/c.jpg", "c.jpg", "../a/c.jpg", "/a.b/ä ö.jpg", "/a/b")):
            inside = root is not None and path.is_relative_to(root)
            expected = path.relative_to(root).as_posix() if inside else str(path)
            assert replace(table, paths=(path,), root=root).shown(0) == expected, (root, path)


def test_a_lost_memory_of_hashes_is_no_loss(table, cache_folder):
    first = data_hash(table)
    (memory,) = (cache_folder / "hashes").iterdir()
    memory.write_text("{ damaged")
    assert data_hash(table) == first


def test_the_hash_of_arrays():
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    one = Table(np.array([0, 0, 1, 1]), ("a", "b"), images=images)
    other = images.copy()
    other[3, 7, 7, 2] ^= 1
    hashes = [
        data_hash(one),
        data_hash(Table(one.labels, one.classes, images=other)),
        data_hash(Table(one.labels[::-1].copy(), one.classes, images=images)),
    ]
    assert len(set(hashes)) == 3
    assert data_hash(Table(one.labels.copy(), ("a", "b"), images=images.copy())) == hashes[0]


# -- the images -------------------------------------------------------------------------------------------------


def test_images_are_decoded_with_the_shorter_side_resized(table):
    images = decoded(table, resize=16)
    assert len(images) == 6
    assert images.rows.tolist() == list(range(6))
    assert images.skipped == []
    assert not images.in_memory
    for i, path in enumerate(table.paths):
        height, width = read_image(path).shape[:2]
        assert min(images[i].shape[:2]) == 16
        assert images[i].shape[0] / images[i].shape[1] == pytest.approx(height / width, rel=0.06)
        with Image.open(path) as image:
            shape = images[i].shape[1::-1]
            expected = np.asarray(image.convert("RGB").resize(shape, Image.Resampling.BILINEAR)).astype(int)
        assert np.abs(images[i] - expected).max() <= (0 if path.suffix == ".png" else 4)


def test_an_image_of_the_right_size_stays_as_it_is(table):
    images = decoded(table, resize=20)
    assert (images[0] == read_image(table.paths[0])).all()


def test_the_second_time_nothing_is_decoded(table, monkeypatch):
    first = decoded(table, resize=16)
    monkeypatch.setattr(cache, "read_image", lambda path: pytest.fail("decoded again"))
    second = decoded(table, resize=16)
    assert (first.pixels == second.pixels).all()
    with pytest.raises(pytest.fail.Exception):  # another size is another cache
        decoded(table, resize=12)


def test_rebuilt_when_an_image_changes(table, picture):
    before = decoded(table, resize=16)[1].copy()
    picture(table.paths[1], seed=99, height=21, width=37)
    after = decoded(table, resize=16)[1]
    assert before.shape == after.shape
    assert (before != after).any()


@pytest.mark.parametrize("file", ["pixels.bin", "index.npz"])
def test_rebuilt_when_the_cache_is_damaged(table, cache_folder, file):
    before = np.array(decoded(table, resize=16).pixels)
    (damaged,) = (cache_folder / "decoded").glob(f"*/{file}")
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert (decoded(table, resize=16).pixels == before).all()
    damaged.unlink()
    assert (decoded(table, resize=16).pixels == before).all()


def test_a_broken_image_is_named_or_skipped(table, cache_folder):
    table.paths[3].write_text("this is text")
    table.paths[4].unlink()
    with pytest.raises(NearkinError, match=r"b/3\.png cannot be read: it is not an image.*; data\.on_error=skip"):
        decoded(table, resize=16)
    assert [path.suffix for path in caches(cache_folder)] == [".part"]  # what was decoded before it
    images = decoded(table, resize=16, on_error="skip")
    assert images.rows.tolist() == [0, 1, 2, 5]
    assert [Path(path).name for path, _ in images.skipped] == ["3.png", "4.png"]
    assert "does not exist" in images.skipped[1][1]
    assert images[3].shape[:2] == (16, 16)
    with pytest.raises(NearkinError, match=r"b/3\.png.*; data\.on_error=skip"):  # the skipping cache does not hide it
        decoded(table, resize=16)
    readable = table.take(images.rows)
    assert [path.name for path in readable.paths] == ["0.png", "1.png", "2.png", "5.jpg"]
    assert readable.labels.tolist() == [0, 0, 1, 2]


def test_all_broken(table):
    for path in table.paths:
        path.write_text("text")
    with pytest.raises(NearkinError, match="all 6 images"):
        decoded(table, resize=16, on_error="skip")


@pytest.mark.parametrize("when", [0, 3])
def test_a_full_disk_leaves_nothing(table, cache_folder, monkeypatch, when):
    count = 0

    class Full(io.FileIO):
        def write(self, data):
            nonlocal count
            count += 1
            if count > when:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr("nearkin.data.journal.open", Full, raising=False)
    with pytest.raises(NearkinError, match=r"the disk is full: .* needed\).*NEARKIN_CACHE") as error:
        decoded(table, resize=16)
    assert "\n" not in str(error.value)
    assert left_behind(cache_folder) == []
    assert caches(cache_folder) == []


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("file", ["pixels.bin", "journal", "index.npz"])
def test_after_a_failed_write_nothing_that_was_written_is_decoded_twice(table, cache_folder, monkeypatch, file, code):
    """The journal is written after every second image; at the third write, or at the index, the disk fails."""
    writes = []

    class Failing(io.FileIO):
        def write(self, data):
            if Path(self.name).name == file:
                writes.append(len(data))
                if len(writes) == 3 or file == "index.npz":
                    raise OSError(code, os.strerror(code))
            return super().write(data)

    monkeypatch.setattr(journal, "COMMIT_IMAGES", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # in order
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", Failing, raising=False)
        with pytest.raises((NearkinError, OSError)):
            decoded(table, resize=16)
    assert [path.suffix for path in caches(cache_folder)] == [".part"]
    again = []
    monkeypatch.setattr(cache, "read_image", lambda path: again.append(path) or read_image(path))
    images = decoded(table, resize=16)
    assert len(again) == {"pixels.bin": 4, "journal": 2, "index.npz": 0}[file]
    assert [path.suffix for path in caches(cache_folder)] == [""]
    for i, path in enumerate(table.paths):
        assert (images[i] == shorter_side(read_image(path), 16)).all()


def test_after_ctrl_c_nothing_is_decoded_twice(table, cache_folder, monkeypatch):
    opened = []

    def some(path):
        if len(opened) == 4:
            raise KeyboardInterrupt
        opened.append(path)
        return read_image(path)

    monkeypatch.setattr(cache, "read_image", some)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # in order
    with pytest.raises(KeyboardInterrupt):
        decoded(table, resize=16)
    assert [path.suffix for path in caches(cache_folder)] == [".part"]
    again = []
    monkeypatch.setattr(cache, "read_image", lambda path: again.append(path) or read_image(path))
    images = decoded(table, resize=16)
    assert len(again) + len(opened) == 6
    assert not {*again} & {*opened}
    assert [path.suffix for path in caches(cache_folder)] == [""]
    for i, path in enumerate(table.paths):
        assert (images[i] == shorter_side(read_image(path), 16)).all()


def test_a_cache_that_cannot_be_written(table, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "file"))
    with pytest.raises(NearkinError, match="cannot write"):
        decoded(table, resize=16)


def _decode_at_once(root, barrier, results):
    """In a process of its own: how many images it decoded, and the pixels that it got."""
    calls = []

    def slow(path):
        calls.append(path)  # threads decode: append is atomic
        time.sleep(0.02)  # so that the other process comes meanwhile
        return read_image(path)

    cache.read_image = slow
    table = load_table("folder", root)
    data_hash(table)  # remembered: both come to the decoding at once
    barrier.wait(60)
    pixels = decoded(table, resize=16).pixels.tobytes()
    results.put((len(calls), pixels))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_of_two_processes_at_once_one_decodes_and_the_other_waits(tmp_path, picture, cache_folder):
    for i in range(20):
        picture(tmp_path / "pictures" / f"class{i % 4}" / f"{i}.png", seed=i)
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(2), context.Queue()
    arguments = (tmp_path / "pictures", barrier, results)
    processes = [context.Process(target=_decode_at_once, args=arguments, daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    (first, one), (second, two) = (results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
    assert sorted([first, second]) == [0, 20]
    assert one == two
    assert len(one) == decoded(load_table("folder", tmp_path / "pictures"), resize=16).pixels.nbytes > 0
    assert len(caches(cache_folder)) == 1


def test_after_a_process_that_failed_the_next_one_decodes(table, monkeypatch):
    monkeypatch.setattr(cache, "read_image", lambda path: (_ for _ in ()).throw(RuntimeError))
    with pytest.raises(RuntimeError):
        decoded(table, resize=16)
    monkeypatch.setattr(cache, "read_image", read_image)
    assert len(decoded(table, resize=16)) == 6  # the lock is free


def test_arrays_bypass_the_file(cache_folder):
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 10, 3), dtype=np.uint8)
    table = Table(np.zeros(4, np.int64), ("a",), images=images)
    same, smaller = decoded(table, resize=8), decoded(table, resize=4)
    assert same.in_memory
    assert (same[2] == images[2]).all()
    assert smaller[3].shape == (4, 5, 3)
    assert not cache_folder.exists()


def test_bad_settings(table):
    with pytest.raises(NearkinError, match="resize=0"):
        decoded(table, resize=0)
    with pytest.raises(NearkinError, match=r"on_error='ignore'.*raise, skip"):
        decoded(table, resize=8, on_error="ignore")
