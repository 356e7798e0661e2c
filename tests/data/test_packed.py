"""The forms in which images are kept: equal shapes, equal or nearly equal pixels, whole after any kill."""

import io
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from nearkin.cache import cached
from nearkin.cli.cache import cache_list
from nearkin.config.spec import make_spec
from nearkin.data import Augment, Decoded, Files, Packed, PixelSource, Table, cache, journal, load_table, room
from nearkin.data.cache import open_images
from nearkin.data.images import image_shape, read_image
from nearkin.errors import NearkinError

FORMS = ("decoded", "packed", "none")
FOLDERS = {"decoded": "decoded", "packed": "packed", "none": "sizes"}


def oriented(path, orientation, **options):
    """A picture in a file that says how it must be turned."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    with Image.open(path) as image:
        image.load()
    image.save(path, exif=exif, **options)


@pytest.fixture
def table(tmp_path, picture):
    """Eight images of eight shapes and several kinds; one lies on its side."""
    names = ("a/0.png", "a/1.jpg", "b/2.png", "b/3.jpg", "c/4.gif", "c/5.jpg", "d/6.png", "d/7.jpg")
    for i, name in enumerate(names):
        picture(tmp_path / "pictures" / name, seed=i, height=20 + 9 * i, width=64 - 3 * i)
    oriented(tmp_path / "pictures" / "b/3.jpg", 6)
    return load_table("folder", tmp_path / "pictures")


def source_of(images, **more):
    return PixelSource(images, size=16, crop=12, augment=Augment(), **more)


def batches(images, **more):
    rows = np.arange(len(images))
    drawn = source_of(images, **more).train(rows, torch.Generator().manual_seed(3))
    return drawn.numpy().astype(int), source_of(images, **more).test(rows).numpy().astype(int)


# these images have a colour every four pixels at 16 px, which half resolution blurs; at 70 px they are like photographs
@pytest.mark.parametrize(("sizes", "loss"), [({"resize": 16}, 7), ({"resize": 16, "keep": 40}, 4), ({"resize": 70}, 2)])
def test_none_equals_decoded_to_the_bit_and_packed_nearly(table, sizes, loss):
    decoded, packed, files = (open_images(table, cache=form, **sizes) for form in FORMS)
    assert [type(images) for images in (decoded, packed, files)] == [Decoded, Packed, Files]
    for images in (packed, files):
        assert (images.shapes == decoded.shapes).all()
        assert images.rows.tolist() == list(range(8))
    for i in range(8):
        assert (files[i] == decoded[i]).all()
        assert packed[i].shape == decoded[i].shape
    crops, tests = batches(decoded, resize=sizes["resize"])
    same_crops, same_tests = batches(files, resize=sizes["resize"])
    assert (same_crops == crops).all()
    assert (same_tests == tests).all()
    near_crops, near_tests = batches(packed, resize=sizes["resize"])
    assert 0 < np.abs(near_crops - crops).mean() < loss  # of 255
    assert 0 < np.abs(near_tests - tests).mean() < loss
    assert np.abs(crops[::-1] - crops).mean() > 30  # another crop


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [
        (20, 30, (24, 36)),
        (24, 30, (24, 30)),
        (33, 30, (33, 30)),
        (40, 44, (40, 44)),
        (80, 120, (40, 60)),
        (90, 41, (88, 40)),
    ],
)
def test_keep_is_the_largest_size_and_resize_the_smallest(tmp_path, picture, height, width, expected):
    pixels = picture(tmp_path / "data" / "a" / "0.png", height=height, width=width)
    images = open_images(load_table("folder", tmp_path / "data"), resize=24, keep=40)
    assert images[0].shape == (*expected, 3)
    shape = expected[::-1]
    by_hand = np.asarray(Image.fromarray(pixels).resize(shape, Image.Resampling.BILINEAR, reducing_gap=3.0))
    assert (images[0] == by_hand).all()


def test_a_small_crop_of_a_larger_copy_is_sharper(tmp_path, picture):
    """What `keep` is for: a crop of 16 pixels that covers a quarter of the side."""
    rng = np.random.default_rng(0)
    (tmp_path / "data" / "a").mkdir(parents=True)
    Image.fromarray(rng.integers(0, 256, (128, 128, 3), dtype=np.uint8)).save(tmp_path / "data" / "a" / "0.png")
    table = load_table("folder", tmp_path / "data")
    spread = []
    for keep in (None, 128):
        source = PixelSource(
            open_images(table, resize=32, keep=keep),
            size=32,
            crop=16,
            resize=32,
            augment=Augment(crop_scale=(0.06, 0.06), flip=False),
        )
        spread.append(source.train(np.zeros(4, int), torch.Generator().manual_seed(0)).float().std().item())
    assert spread[1] > 1.5 * spread[0]


def test_several_threads_may_read_at_once(table):
    for form in FORMS:
        images = open_images(table, resize=16, cache=form)
        expected = [images[i].copy() for i in range(8)]
        rows = np.random.default_rng(0).integers(8, size=200).tolist()
        with ThreadPoolExecutor(8) as pool:
            for i, pixels in zip(rows, pool.map(images.__getitem__, rows), strict=True):
                assert (pixels == expected[i]).all()


def zoo(folder, picture):
    for orientation in range(1, 9):
        for ending in ("jpg", "png", "tif", "webp"):
            path = folder / f"{orientation}.{ending}"
            picture(path, height=20, width=33)
            oriented(path, orientation)
    picture(folder / "cmyk.jpg")
    Image.open(folder / "cmyk.jpg").convert("CMYK").save(folder / "cmyk.jpg")
    Image.open(folder / "1.png").convert("P").save(folder / "palette.gif")
    Image.open(folder / "1.png").convert("I;16").save(folder / "deep.png")
    with Image.open(folder / "1.jpg") as image:  # a header of 150 kB
        image.save(folder / "long.jpg", icc_profile=bytes(150_000))
        xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><r tiff:Orientation="6"/></x:xmpmeta>'
        image.info.pop("exif", None)
        image.save(folder / "xmp.jpg", xmp=xmp)


def test_the_shape_of_every_kind_of_file_is_known_beforehand(tmp_path, picture):
    zoo(tmp_path, picture)
    files = sorted(tmp_path.glob("*.*"))
    assert len(files) > 30
    turned = 0
    for path in files:
        assert image_shape(path) == read_image(path).shape[:2], path.name
        turned += image_shape(path) == (33, 20)
    assert turned >= 8
    for content in (b"", b"text", b"\xff\xd8\xff", (tmp_path / "1.png").read_bytes()[:20]):
        (tmp_path / "bad.jpg").write_bytes(content)
        with pytest.raises(NearkinError, match=r"bad\.jpg cannot be read"):
            image_shape(tmp_path / "bad.jpg")
    with pytest.raises(NearkinError, match="does not exist"):
        image_shape(tmp_path / "absent.jpg")


# -- killed -----------------------------------------------------------------------------------------------------


def built(folder):
    """The bytes of all finished entries of a cache, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for kind in FOLDERS.values()
        for path in sorted((folder / kind).glob("*/*"))
        if path.parent.suffix == "" and path.name != "journal"
    }


def killed(table, form, moment):
    """In a process of its own: build, and die by SIGKILL at a moment of writing. Whether it died."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = [moment]

    def deadly(function):
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    try:
        for name in ("fsync", "replace", "truncate"):
            setattr(os, name, deadly(getattr(os, name)))
        journal.COMMIT_IMAGES = 2
        journal.Journal.add = deadly(journal.Journal.add)
        journal.np.savez = deadly(journal.np.savez)
        journal.Path.unlink = deadly(journal.Path.unlink)
        open_images(table, resize=16, cache=form)
        os._exit(0)
    except BaseException:
        os._exit(1)


@pytest.mark.parametrize("form", FORMS)
def test_killed_at_any_moment_a_build_goes_on_to_the_same_bytes(table, cache_folder, form):
    open_images(table, resize=16, cache=form)
    undisturbed = built(cache_folder)
    assert len(undisturbed) == 2
    begun = deaths = 0
    for moment in range(100):
        shutil.rmtree(cache_folder / FOLDERS[form])
        if not killed(table, form, moment):
            break
        deaths += 1
        assert built(cache_folder) in ({}, undisturbed)  # all or nothing
        begun += any(entry.path.suffix == ".part" and entry.size for entry in cached())
        open_images(table, resize=16, cache=form)
        assert built(cache_folder) == undisturbed
        assert not list((cache_folder / FOLDERS[form]).glob("*.part"))
    assert built(cache_folder) == undisturbed
    assert deaths > 15
    assert begun > 5


@pytest.mark.parametrize("form", FORMS)
def test_killed_again_and_again_it_is_finished_in_the_end(table, cache_folder, form):
    open_images(table, resize=16, cache=form)
    undisturbed = built(cache_folder)
    shutil.rmtree(cache_folder / FOLDERS[form])
    deaths = 0
    while killed(table, form, 7):
        deaths += 1
        assert deaths < 20
    assert deaths > 1
    assert built(cache_folder) == undisturbed


@pytest.mark.parametrize("damage", ["short pixels", "torn journal", "strange journal", "no journal", "more pixels"])
def test_what_a_power_cut_leaves_is_cut_back(table, cache_folder, damage, monkeypatch):
    expected = {}
    for form in ("decoded", "packed"):
        open_images(table, resize=16, cache=form)
    expected = built(cache_folder)
    for form in ("decoded", "packed"):
        shutil.rmtree(cache_folder / FOLDERS[form])
        assert killed(table, form, 14)
        (part,) = (cache_folder / FOLDERS[form]).glob("*.part")
        pixels, lines = part / "pixels.bin", part / "journal"
        assert lines.stat().st_size
        if damage == "short pixels":
            os.truncate(pixels, pixels.stat().st_size // 2)
        elif damage == "torn journal":
            os.truncate(lines, lines.stat().st_size - 4)
        elif damage == "strange journal":
            lines.write_bytes(lines.read_bytes() + b'[-1, 2, 3]\n{"a": 1}\n')
        elif damage == "no journal":
            lines.unlink()
        else:
            pixels.write_bytes(pixels.read_bytes() + bytes(1000))
        open_images(table, resize=16, cache=form)
    assert built(cache_folder) == expected


def test_a_stopped_build_that_skipped_hides_nothing_from_one_that_stops(table, cache_folder, monkeypatch):
    table.paths[1].write_text("text")
    monkeypatch.setattr(journal, "_write_index", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        open_images(table, resize=16, cache="packed", on_error="skip")
    monkeypatch.undo()
    monkeypatch.setenv("NEARKIN_CACHE", str(cache_folder))
    monkeypatch.setattr(cache, "read_image", lambda path: pytest.fail("decoded again"))
    with pytest.raises(NearkinError, match=r"1\.jpg cannot be read: it is not an image"):
        open_images(table, resize=16, cache="packed")
    images = open_images(table, resize=16, cache="packed", on_error="skip")
    assert images.rows.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert [reason[:18] for _, reason in images.skipped] == ["it is not an image"]


def test_the_list_of_the_cache_names_packed_and_unfinished_entries(table, capsys):
    open_images(table, resize=16, cache="packed")
    assert killed(table, "decoded", 14)
    assert sorted((each.kind, each.path.suffix) for each in cached() if each.kind != "hashes") == [
        ("decoded", ".part"),
        ("packed", ""),
    ]
    cache_list(as_json=False)
    said = capsys.readouterr().out
    assert "packed" in said
    assert "decoded, unfinished" in said


# -- damaged, or no room ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 100, -1])
def test_a_packed_file_cut_short_is_said_and_made_again(table, cache_folder, cut, capsys):
    open_images(table, resize=16, cache="packed")
    expected = built(cache_folder)
    (file,) = (cache_folder / "packed").glob("*/pixels.bin")
    file.write_bytes(file.read_bytes()[:cut])
    capsys.readouterr()
    open_images(table, resize=16, cache="packed")
    assert f"{file.parent} is damaged and is made again" in capsys.readouterr().err
    assert built(cache_folder) == expected


@pytest.mark.parametrize("form", ["decoded", "packed"])
def test_an_image_that_is_damaged_inside_is_never_shown(table, cache_folder, monkeypatch, capsys, form):
    before = [image.copy() for image in open_images(table, resize=16, cache=form)]
    expected = built(cache_folder)
    (file,) = (cache_folder / form).glob("*/pixels.bin")
    for small in (0, 1 << 26):  # a large file; one that is verified when opened
        monkeypatch.setattr("nearkin.data.cache.SMALL", small)
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 4
        file.write_bytes(content)
        if not small:
            images = open_images(table, resize=16, cache=form)
            with pytest.raises(NearkinError, match=r"image \d+ of .* is damaged: its CRC-32 differs; the same command"):
                [images[i] for i in range(len(images))]
        images = open_images(table, resize=16, cache=form)
        assert "is damaged and is made again" in capsys.readouterr().err
        assert built(cache_folder) == expected
        assert all(np.array_equal(images[i], before[i]) for i in range(len(images)))


def test_none_stops_at_a_damaged_image_or_skips_it_as_decoded_does(table, cache_folder):
    whole = table.paths[7].read_bytes()
    table.paths[7].write_bytes(whole[: len(whole) * 9 // 10])  # its header is right
    images = open_images(table, resize=16, cache="none")
    with pytest.raises(NearkinError, match=r"7\.jpg cannot be read: .*; data\.on_error=skip"):
        images[7]
    table.paths[5].write_text("text")
    with pytest.raises(NearkinError, match=r"5\.jpg cannot be read: it is not an image.*data\.on_error=skip"):
        open_images(table, resize=16, cache="none")
    decoded, packed, files = (open_images(table, resize=16, cache=form, on_error="skip") for form in FORMS)
    assert decoded.rows.tolist() == packed.rows.tolist() == files.rows.tolist()
    assert decoded.skipped == packed.skipped == files.skipped
    assert files.rows.tolist() == [0, 1, 2, 3, 4, 6]
    assert all((files[i] == decoded[i]).all() for i in range(len(files)))


def test_none_names_a_file_that_changes_under_it(table, picture):
    images = open_images(table, resize=16, cache="none")
    picture(table.paths[0], seed=1, height=50, width=20)
    with pytest.raises(NearkinError, match=r"0\.png is another image"):
        images[0]
    table.paths[0].unlink()
    with pytest.raises(NearkinError, match=r"0\.png cannot be read: the file does not exist; data\.on_error=skip"):
        images[0]


def free(monkeypatch, size):
    monkeypatch.setattr(room.shutil, "disk_usage", lambda place: SimpleNamespace(free=size))


def test_auto_takes_what_there_is_room_for_and_says_it(table, monkeypatch, capsys):
    needs = int(open_images(table, resize=16, cache="none").shapes.prod(1).sum() * 3)
    free(monkeypatch, 2 * needs - 2)
    images = open_images(table, resize=16)
    assert isinstance(images, Files)
    said = capsys.readouterr().err
    assert said.startswith("data.cache=none: decoded images would take about ")
    assert said.count("\n") == 1
    free(monkeypatch, 2 * needs + 8)
    monkeypatch.setenv("NEARKIN_CACHE_LIMIT", str((needs - 1) / 1e9))
    assert isinstance(open_images(table, resize=16), Files)
    assert "NEARKIN_CACHE_LIMIT" in capsys.readouterr().err
    monkeypatch.delenv("NEARKIN_CACHE_LIMIT")
    decoded = open_images(table, resize=16)
    assert isinstance(decoded, Decoded)
    assert all((decoded[i] == images[i]).all() for i in range(8))
    free(monkeypatch, 0)
    assert isinstance(open_images(table, resize=16), Decoded)  # it is there already
    assert capsys.readouterr().err == ""


def test_no_room_for_what_is_asked_for(table, monkeypatch, cache_folder):
    free(monkeypatch, 100)
    with pytest.raises(NearkinError, match=r"data\.cache=decoded: about .* needed, 100 bytes are free.*packed.*none"):
        open_images(table, resize=16, cache="decoded")
    with pytest.raises(NearkinError, match=r"data\.cache=packed: about .* needed, 100 bytes are free.*none nothing"):
        open_images(table, resize=16, cache="packed")
    assert built(cache_folder) == {}


# -- settings -----------------------------------------------------------------------------------------------------


def test_bad_settings(table):
    with pytest.raises(NearkinError, match=r"data\.keep=15: at least data\.resize=16"):
        open_images(table, resize=16, keep=15)
    with pytest.raises(NearkinError, match=r"cache='zip'.*auto, decoded, none, packed"):
        open_images(table, resize=16, cache="zip")
    drawn = Table(np.zeros(2, np.int64), ("a",), images=np.zeros((2, 8, 8, 3), np.uint8), name="glyphs")
    with pytest.raises(NearkinError, match=r"data\.keep=9: the images of glyphs are arrays"):
        open_images(drawn, resize=8, keep=9)
    with pytest.raises(NearkinError, match=r"data\.cache=packed: the images of glyphs are arrays"):
        open_images(drawn, resize=8, cache="packed")
    assert isinstance(open_images(drawn, resize=8, cache="none"), Decoded)


def test_what_changes_pixels_changes_the_name_of_a_run():
    def name(**words):
        return make_spec({"dataset": "folder", **words}).hash("data", "split")

    plain = name()
    assert {name(**{"data.cache": form}) for form in ("auto", "decoded", "none")} == {plain}
    assert len({plain, name(**{"data.cache": "packed"}), name(**{"data.keep": 512}), name(**{"data.keep": 256})}) == 4
    stored = make_spec({"data.cache": "none"}).whole()
    assert make_spec({"data.cache": "decoded"}).differences(stored) == []
    assert "data.cache" in make_spec({"data.cache": "packed"}).differences(stored)[0]


def test_a_jpeg_of_the_stated_quality_is_kept(table, cache_folder):
    images = open_images(table, resize=16, cache="packed")
    with Image.open(io.BytesIO(images.jpegs[: images.offsets[1]].tobytes())) as first:
        assert first.size == tuple(images.shapes[0][::-1])
        assert first.layer[0][1:3] == (2, 2)  # colours at half resolution
        tables = first.quantization
    reference = io.BytesIO()
    Image.fromarray(images[0]).save(reference, "JPEG", quality=cache.QUALITY)
    with Image.open(reference) as same:
        assert tables == same.quantization


@pytest.mark.parametrize("form", ["decoded", "none", "packed"])
@pytest.mark.parametrize("moment", [1, 2])
def test_ctrl_c_while_the_disk_writes_the_journal_loses_and_doubles_nothing(
    table, cache_folder, form, moment, monkeypatch
):
    straight = built_rows(open_images(table, resize=16, cache=form))
    shutil.rmtree(cache_folder)
    monkeypatch.setattr(journal, "COMMIT_IMAGES", 2)
    calls, fsync = iter(range(1000)), os.fsync

    def interrupted(file):
        fsync(file)
        if next(calls) == moment:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_images(table, resize=16, cache=form)
    monkeypatch.setattr(os, "fsync", fsync)
    again = built_rows(open_images(table, resize=16, cache=form))
    assert all(np.array_equal(one, other) for one, other in zip(straight, again, strict=True))


def built_rows(images):
    return [images.rows, images.shapes, *(images[i] for i in range(len(images)))]
