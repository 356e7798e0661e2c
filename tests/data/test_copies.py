"""Copies: equal files and images that were saved again; `verify` and `dedupe` agree on them."""

import shutil
from hashlib import blake2b

import numpy as np
import pytest
from PIL import Image

from nearkin.data import Table, data_hash, dedupe, exclude, load_table, verify
from nearkin.data.exclude import listed
from nearkin.data.hashing import content_hashes


def photograph(seed, side=96):
    """Smooth colours with a little noise on them."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((side * 4 // 3, side), Image.Resampling.BICUBIC)).astype(int)
    return Image.fromarray(np.clip(pixels + rng.integers(-8, 9, pixels.shape), 0, 255).astype(np.uint8))


@pytest.fixture
def root(tmp_path):
    for seed in range(12):
        path = tmp_path / "x" / "abcd"[seed // 3] / f"{seed}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        photograph(seed).save(path)
    return tmp_path / "x"


def agreed(root):
    """The groups on which verify and dedupe agree."""
    table = load_table("folder", root)
    groups = [sorted([*group.left_out, *([group.stays] if group.stays else [])]) for group in dedupe(table)]
    assert sorted(groups) == sorted(sorted(group) for group in verify(table).duplicates)
    return groups


def test_different_images_are_no_copies(root):
    assert agreed(root) == []


SAVED = {
    "JPEG of quality 40": lambda image, path: image.save(path.with_suffix(".jpg"), quality=40),
    "JPEG of quality 90": lambda image, path: image.save(path.with_suffix(".jpg"), quality=90),
    "WebP": lambda image, path: image.save(path.with_suffix(".webp"), quality=70),
    "smaller": lambda image, path: image.resize((64, 48), Image.Resampling.LANCZOS).save(path),
    "larger": lambda image, path: image.resize((256, 192), Image.Resampling.BICUBIC).save(path),
    "the same pixels": lambda image, path: image.save(path.with_suffix(".bmp")),
}


@pytest.mark.parametrize("how", SAVED)
def test_saved_again(root, how):
    SAVED[how](photograph(1), root / "a" / "again.png")
    SAVED[how](photograph(4), root / "d" / "again.png")
    within, across = agreed(root)
    assert [path.partition(".")[0] for path in within] == ["a/1", "a/again"]
    assert [path.partition(".")[0] for path in across] == ["b/4", "d/again"]
    table = load_table("folder", root)
    report, (first, second) = verify(table), dedupe(table)
    assert first.stays == (within[1] if how == "larger" else within[0])  # the largest stays
    assert second.stays is None
    assert (first.again, second.again) == (first.left_out, second.left_out[1:])
    assert len(report.again) == 2
    (problem,) = report.problems
    assert problem.startswith("1 group of equal images in different classes, 1 of them saved again: b/4.png = d/again.")
    assert "saved again" in report.warnings[0]
    text = listed([first, second])
    assert f"# the same image as {first.stays}, saved again, which stays:" in text
    assert "# one image, saved again, but in the classes b, d, so none stays:" in text
    (root.parent / "out.txt").write_text(text)
    left = verify(exclude(table, root.parent / "out.txt"))
    assert left.problems == left.warnings == left.duplicates == []


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        lambda image: image.point(lambda value: value * 0.8),
        lambda image: image.crop((0, 0, 100, 90)),
        lambda image: Image.merge("RGB", image.split()[::-1]),
        lambda image: Image.composite(image, Image.new("RGB", image.size), Image.new("L", image.size, 255)).resize(
            (128, 60)
        ),
    ],
    ids=["mirrored", "darker", "cut", "other colours", "another shape"],
)
def test_what_is_another_image(root, change):
    change(photograph(1)).save(root / "a" / "other.png")
    assert agreed(root) == []


def test_a_small_thing_on_white_is_another_image(root):
    for i, place in enumerate(((10, 10), (60, 40), (90, 70))):
        image = Image.new("RGB", (128, 96), "white")
        image.paste((40, 60, 80), (*place, place[0] + 14, place[1] + 14))
        image.save(root / "a" / f"thing{i}.png")
    for grey in (100, 101, 102):
        Image.new("RGB", (128, 96), (grey, grey, grey)).save(root / "b" / f"grey{grey}.png")
    assert agreed(root) == []
    Image.new("RGB", (128, 96), (100, 100, 100)).save(root / "b" / "again.bmp")
    assert agreed(root) == [["b/again.bmp", "b/grey100.png"]]


def test_equal_and_saved_again_are_one_group(root):
    shutil.copy(root / "a" / "1.png", root / "a" / "copy.png")
    photograph(1).save(root / "a" / "again.jpg", quality=80)
    assert agreed(root) == [["a/1.png", "a/again.jpg", "a/copy.png"]]


def test_unreadable_files_are_no_copies_of_each_other(root):
    (root / "a" / "broken.jpg").write_bytes(b"\xff\xd8 no")
    (root / "b" / "broken.jpg").write_bytes(b"\xff\xd8 none")
    assert agreed(root) == []


def test_a_file_in_several_rows(root):
    rows = ["a/0.png,a,train", "a/0.png,a,train", "a/1.png,a,train", "b/3.png,b,test", "b/4.png,b,test"]
    (root / "list.csv").write_text("\n".join(["path,label,split", *rows]))
    table = load_table("csv", root / "list.csv")
    report = verify(table)
    assert dedupe(table) == []
    assert report.duplicates == []
    assert report.repeated == ["a/0.png"]
    assert report.warnings == ["1 file stands in several rows of one class: a/0.png; keep one row of each"]
    rows += ["b/3.png,b,train"]
    (root / "list.csv").write_text("\n".join(["path,label,split", *rows]))
    report = verify(load_table("csv", root / "list.csv"))
    assert "1 file stands in several splits: b/3.png; keep one row of each" in report.problems


# -- transparent images -----------------------------------------------------------------------------------------


def cut_out(seed, alpha):
    image = photograph(seed)
    image.putalpha(alpha)
    return image


def test_transparent_images_are_other_data_and_opaque_ones_are_not(root):
    """Runs on opaque images keep their names; data with other pixels than before have another."""
    cut_out(20, 255).save(root / "a" / "opaque.png")
    contents = content_hashes(load_table("folder", root))
    for path, content in zip(load_table("folder", root).paths, contents, strict=True):
        assert content == blake2b(path.read_bytes(), digest_size=16).hexdigest()  # as it always was
    before = data_hash(load_table("folder", root))
    cut_out(20, 0).save(root / "a" / "opaque.png")
    table = load_table("folder", root)
    changed = content_hashes(table)[[table.shown(i) for i in range(len(table))].index("a/opaque.png")]
    plain = blake2b((root / "a" / "opaque.png").read_bytes(), digest_size=16).hexdigest()
    assert changed[:16] == plain[:16]  # what a run has learned from is still known
    assert changed != plain
    assert data_hash(table) != before


def test_equal_transparent_images_are_copies(root):
    cut_out(20, 90).save(root / "a" / "cut.png")
    shutil.copy(root / "a" / "cut.png", root / "b" / "cut.png")
    assert agreed(root) == [["a/cut.png", "b/cut.png"]]


def test_arrays_are_compared_bit_by_bit():
    images = np.stack([np.asarray(photograph(1).resize((16, 16)))] * 3)
    images[2, 0, 0] += 1
    report = verify(Table(np.array([0, 0, 0]), ("a",), images=images))
    assert report.duplicates == [["image 0", "image 1"]]
