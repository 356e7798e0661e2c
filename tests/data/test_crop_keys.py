"""data.crop_scale, data.crop_ratio, data.flip, data.augment: from words to pixels, in the name of a run; refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nearkin
from nearkin.config.parse import parse_words
from nearkin.config.spec import RunSpec, make_spec
from nearkin.data import Augment, decoded
from nearkin.data.transforms import draw_crops
from nearkin.errors import NearkinError
from nearkin.runs.prepare import augment_of, make_source, prepare, read_data, read_table

GLYPHS = {"dataset": "glyphs", "data.classes": 8, "data.per_class": 6, "train.batch": 8, "epochs": 1, "dim": 8}


def spec_of(*words):
    return make_spec(parse_words(list(words)))


@pytest.fixture
def photos(tmp_path, picture):
    """Words of a run on a folder of eight classes, images of 40 x 52."""
    for i in range(48):
        picture(tmp_path / "photos" / "abcdefgh"[i % 8] / f"{i}.png", seed=i, height=40, width=52)
    return {
        "dataset": "folder",
        "root": str(tmp_path / "photos"),
        "train.batch": 8,
        "epochs": 1,
        "dim": 8,
        "data.size": 24,
        "data.resize": 32,
        "data.crop": 20,
    }


# -- words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["0.16-1", ".16-1", "0.16 - 1.0", "[0.16,1]", "[.16, 1.]"])
def test_two_numbers_are_written_as_people_write_them(word):
    spec = spec_of(f"data.crop_scale={word}")
    assert spec.data.crop_scale == (0.16, 1.0)
    assert spec.hash("d", "s") == make_spec({"data.crop_scale": (0.16, 1)}).hash("d", "s")
    assert make_spec(spec.tree()) == spec
    assert RunSpec.model_validate(spec.whole()) == spec  # as a run is stored


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("crop_scale=0.16-1.5", "data.crop_scale=0.16-1.5: .*0 < low <= high <= 1"),
        ("crop_scale=1-0.16", "data.crop_scale=1-0.16: .*0 < low <= high <= 1"),
        ("crop_scale=0-1", "data.crop_scale=0-1: .*0 < low"),
        ("crop_scale=[-0.1,1]", "data.crop_scale=-0.1-1: .*0 < low"),
        ("crop_scale=nan-1", "data.crop_scale=nan-1: .*0 < low"),
        ("crop_scale=[0.1,0.2,0.3]", r"data.crop_scale=\[0.1, 0.2, 0.3\]: two numbers"),
        ("crop_scale=0.5", "data.crop_scale=0.5: two numbers .*data.crop_scale=0.5-1"),
        ("crop_scale=small", "data.crop_scale='small': two numbers"),
        ("crop_scale=true", "data.crop_scale=True: two numbers"),
        ("crop_ratio=0-1", "data.crop_ratio=0-1: .*0 < low <= high$"),
        ("crop_ratio=1.33-0.75", "data.crop_ratio=1.33-0.75: .*low <= high"),
        ("crop_ratio=1-inf", "data.crop_ratio=1-inf: .*low <= high"),
        ("flip=sometimes", "data.flip='sometimes': .*boolean"),
        ("augment=crop", "data.augment='crop': .*'resized_crop' or 'resize_crop'"),
    ],
)
def test_bad_words_are_refused_with_value_and_bound(word, said):
    with pytest.raises(NearkinError, match=said):
        spec_of(f"data.{word}")


@pytest.mark.parametrize("key", ["crop_scale", "crop_ratio"])
def test_what_resize_crop_does_not_read_is_refused(key):
    with pytest.raises(NearkinError, match=rf"data.{key}=0.5-1 is not read with data.augment=resize_crop"):
        spec_of("data.augment=resize_crop", f"data.{key}=0.5-1")


def test_a_ratio_without_crops_is_refused(tmp_path):
    """Before anything is stored."""
    with pytest.raises(NearkinError, match=r"data.crop_ratio=0.5-2 has no effect.*glyphs.*data.crop_scale=0.5-1"):
        nearkin.train(GLYPHS | {"data.crop_ratio": "0.5-2"}, runs=tmp_path)
    assert list(tmp_path.glob("*/spec.json")) == []


def test_the_name_of_a_run_covers_the_keys_where_they_differ():
    def name(*words):
        return spec_of(*words).hash("d", "s")

    plain = name()
    words = [
        "data.crop_scale=0.16-1",
        "data.crop_scale=0.2-1",
        "data.crop_ratio=0.75-1.33",
        "data.flip=true",
        "data.flip=false",
        "data.augment=resize_crop",
    ]
    assert len({plain, *(name(word) for word in words)}) == 1 + len(words)
    null = [
        "data.crop_scale=null",
        "data.crop_ratio=null",
        "data.flip=null",
        "data.augment=resized_crop",
        "train.loaders=null",
        "train.loaders=3",
    ]
    assert {name(word) for word in null} == {plain}


# -- what they do -----------------------------------------------------------------------------------------------


def test_the_data_set_says_what_nobody_else_says(photos):
    for words, own in ((photos, Augment()), (GLYPHS, Augment(crop_scale=None, flip=False))):
        data = make_spec(words, {"data.resize": 32}).data
        assert augment_of(data, read_table(data)) == own


def test_words_override_the_data_set():
    def augment(**said):
        data = make_spec(GLYPHS, {"data.resize": 32} | {f"data.{k}": v for k, v in said.items()}).data
        return augment_of(data, read_table(data))

    assert augment(crop_scale="0.16-1") == Augment(crop_scale=(0.16, 1), flip=False)
    assert augment(crop_scale="0.16-1", crop_ratio="1-1", flip=True) == Augment((0.16, 1), (1, 1))
    assert augment(flip=True) == Augment(crop_scale=None)
    assert augment(augment="resize_crop") == Augment(crop_scale=None, flip=False, kind="resize_crop")


def test_areas_are_those_of_the_scale(photos):
    """Of images whose red is the column and whose green is the row, a crop without resizing shows what it shows."""
    root = Path(photos["root"])
    columns, lines = np.meshgrid(np.arange(128), np.arange(96))
    image = Image.fromarray(np.stack([columns, lines, lines], 2).astype(np.uint8))
    for path in root.rglob("*.png"):
        image.save(path)
    words = photos | {"data.resize": 96, "data.crop": 64, "data.crop_scale": "0.2-0.4", "data.crop_ratio": "0.9-1.1"}
    prepared = prepare(make_spec(words, {"data.flip": False}))
    shares, ratios = [], []
    for seed in range(40):
        x = prepared.pixels.train(np.arange(12), torch.Generator().manual_seed(seed)).float()
        # a gradient over w pixels, resized to 64, rises by w / 64 per pixel
        w, h = ((x[:, 0, 32, 56] - x[:, 0, 32, 8]) / 48 * 64), ((x[:, 1, 56, 32] - x[:, 1, 8, 32]) / 48 * 64)
        shares += (w * h / (96 * 128)).tolist()
        ratios += (w / h).tolist()
    assert 0.17 < min(shares) < 0.22
    assert 0.38 < max(shares) < 0.43
    assert np.mean(shares) == pytest.approx(0.3, abs=0.01)  # uniform
    assert 0.85 < min(ratios) < max(ratios) < 1.18
    assert np.mean(np.log(ratios)) == pytest.approx(0, abs=0.01)


def test_flip_is_on_off_or_the_data_sets(photos):
    def mirrored(words):
        pixels = prepare(make_spec(words)).pixels
        whole, rows = pixels.test(np.arange(20)), np.arange(20)
        batch = pixels.train(rows, torch.Generator().manual_seed(0), size=whole.shape[-1])
        return sum(torch.equal(a, b.flip(-1)) and not torch.equal(a, b) for a, b in zip(whole, batch, strict=True))

    assert mirrored(GLYPHS) == mirrored(GLYPHS | {"data.flip": False}) == 0
    assert 3 < mirrored(GLYPHS | {"data.flip": True}) < 17


def test_resize_crop_from_words_to_pixels(photos):
    """Photos of 40 x 52, resized to 32 x 42, from which 20 x 20 are cut."""
    prepared = prepare(make_spec(photos, {"data.augment": "resize_crop", "data.flip": False}))
    data = read_data(prepared.spec.data)
    batch = prepared.pixels.train(np.arange(24), torch.Generator().manual_seed(0)).numpy()
    resized = decoded(data.table, resize=32)
    for row in range(24):
        image = resized[row].transpose(2, 0, 1)
        assert image.shape == (3, 32, 42)
        parts = [image[:, y : y + 20, x : x + 20] for y in range(13) for x in range(23)]
        assert sum((part == batch[row]).all() for part in parts) == 1


def test_of_a_larger_copy_the_geometry_is_that_of_resize(photos):
    """Kept at 40 x 52; test images and crops of fixed size are cut at 32 x 42, others from the larger copy."""
    words = {"data.augment": "resize_crop"}
    small, large = (prepare(make_spec(photos, words, {"data.keep": keep})).pixels for keep in (None, 40))
    assert large.images.shapes.tolist() == [[40, 52]] * 48
    assert small.images.shapes.tolist() == [[32, 42]] * 48
    rows = np.arange(48)
    assert torch.equal(small.test(rows), large.test(rows))  # resized once, whether before or after it is kept
    drawn = [source.train(rows, torch.Generator().manual_seed(0)) for source in (small, large)]
    assert torch.equal(*drawn)
    small, large = (prepare(make_spec(photos, {"data.keep": keep})).pixels for keep in (None, 40))
    boxes, flips = draw_crops(*large.images.shapes.T, Augment(), torch.Generator().manual_seed(0))
    x = large.train(rows, torch.Generator().manual_seed(0)).numpy()
    for row, (left, top, w, h) in enumerate(boxes):
        part = Image.fromarray(large.images[row]).crop((left, top, left + w, top + h))
        part = np.asarray(part.resize((20, 20), Image.Resampling.BILINEAR))
        assert (x[row] == (part[:, ::-1] if flips[row] else part).transpose(2, 0, 1)).all()


def test_views_behind_a_cut_are_cut_as_the_words_say(photos, tmp_path):
    """Mirror images where they are switched on, crops of the kind that is asked for."""

    def views(**said):
        words = GLYPHS | {"cut": "all", "model.views": 3} | {f"data.{k}": v for k, v in said.items()}
        prepared = prepare(make_spec(words))
        spec = prepared.spec
        torch.manual_seed(0)
        model = nearkin.models.build_model(**spec.model.model_dump(exclude={"views"})).eval()
        source = make_source(prepared, model)
        row = prepared.split.train[0]
        further = source.more[source.first[row] : source.first[row] + 2]
        return source, torch.from_numpy(np.concatenate([source.plain[row : row + 1], further])), row, model

    def front(model, images):
        with torch.no_grad():
            return model.front(images).half()

    source, plain, row, model = views()
    assert torch.equal(plain[0], plain[1])  # glyphs are neither mirrored nor cropped
    source, flipped, row, model = views(flip=True)
    torch.testing.assert_close(flipped[1], front(model, source.pixels.test(np.array([row])).flip(-1))[0])
    assert not torch.equal(flipped[0], flipped[1])
    _, cropped, _, _ = views(crop_scale="0.3-0.5")
    assert not torch.equal(cropped[0], cropped[1])
    assert not torch.equal(cropped[1], cropped[2])
    _, shifted, _, _ = views(augment="resize_crop", resize=40, size=32)
    assert not torch.equal(shifted[1], shifted[2])


def test_a_run_with_other_crops_is_another_run_with_other_weights(tmp_path):
    words = [{}, {"data.crop_scale": "0.5-1"}, {"data.augment": "resize_crop", "data.crop": 24}]
    runs = [nearkin.train(GLYPHS | each, runs=tmp_path) for each in words]
    assert len({run.hash for run in runs}) == 3
    weights = [run.load("model.pt")["model"] for run in runs]
    key = next(iter(weights[0]))
    assert not any(torch.equal(weights[0][key], other[key]) for other in weights[1:])
