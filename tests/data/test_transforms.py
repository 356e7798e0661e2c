"""Crops against a loop that follows the published algorithm literally."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from nearkin.data import Augment, Decoded, PixelSource, Table, decoded, load_table
from nearkin.data.transforms import DRAWS, TRIES, centre, draw_crops, random_resized_boxes, scaled, shorter_side
from nearkin.errors import NearkinError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def oracle_box(height, width, scale, ratio, u):
    """One image, one try after the other, on the same random numbers."""
    areas, ratios, (x, y) = u[:TRIES], u[TRIES : 2 * TRIES], u[2 * TRIES :]
    for a, r in zip(areas, ratios, strict=True):
        area = height * width * (scale[0] + a * (scale[1] - scale[0]))
        aspect = math.exp(math.log(ratio[0]) + r * (math.log(ratio[1]) - math.log(ratio[0])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return [int(x * (width - w + 1)), int(y * (height - h + 1)), w, h]
    if width / height < ratio[0]:
        w, h = width, round(width / ratio[0])
    elif width / height > ratio[1]:
        w, h = round(height * ratio[1]), height
    else:
        w, h = width, height
    return [(width - w) // 2, (height - h) // 2, w, h]


@pytest.mark.parametrize("scale", [(0.08, 1.0), (0.16, 1.0), (0.9, 1.0)])
def test_boxes_equal_the_oracle(scale):
    rng = np.random.default_rng(0)
    heights, widths = rng.integers(8, 200, (2, 500))
    widths[:50] = heights[:50] * 9  # long ones need the way out
    u = rng.random((500, 2 * TRIES + 2))
    ratio = (3 / 4, 4 / 3)
    boxes = random_resized_boxes(heights, widths, scale, ratio, u)
    assert boxes.tolist() == [oracle_box(h, w, scale, ratio, row) for h, w, row in zip(heights, widths, u, strict=True)]
    assert (boxes[:, 2:] > 0).all()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 0] + boxes[:, 2] <= widths).all()
    assert (boxes[:, 1] + boxes[:, 3] <= heights).all()


def test_areas_and_ratios_have_the_stated_distribution():
    n = 20_000
    sides = np.full(n, 1000)
    boxes, flips = draw_crops(sides, sides, Augment(crop_scale=(0.1, 0.5)), generator())
    area = boxes[:, 2] * boxes[:, 3] / 1e6  # small enough that every first try fits
    assert 0.099 < area.min() < area.max() < 0.501  # whole pixels
    assert area.mean() == pytest.approx(0.3, abs=0.005)
    assert area.std() == pytest.approx(0.4 / math.sqrt(12), abs=0.003)
    log_ratio = np.log(boxes[:, 2] / boxes[:, 3])
    assert log_ratio.mean() == pytest.approx(0, abs=0.005)
    assert log_ratio.std() == pytest.approx(2 * math.log(4 / 3) / math.sqrt(12), abs=0.003)
    place = boxes[:, 0] / (1000 - boxes[:, 2])
    assert place.mean() == pytest.approx(0.5, abs=0.01)
    assert flips.mean() == pytest.approx(0.5, abs=0.015)


def test_an_image_keeps_its_crop_whatever_the_others_are():
    one = np.array([30, 40, 50]), np.array([60, 50, 40])
    other = np.array([30, 400, 5]), np.array([60, 5, 40])
    first, second = (draw_crops(*shapes, Augment(), generator()) for shapes in (one, other))
    assert (first[0][0] == second[0][0]).all()
    assert (first[1] == second[1]).all()


@pytest.mark.parametrize(("height", "width"), [(7, 13), (13, 7), (64, 64), (3, 300)])
def test_shorter_side(height, width):
    image = np.zeros((height, width, 3), np.uint8)
    for size in (5, 16):
        h, w = shorter_side(image, size).shape[:2]
        assert min(h, w) == size
        assert max(h, w) == round(max(height, width) * size / min(height, width))


def test_scaled_is_the_shape_of_the_resized_image():
    rng = np.random.default_rng(1)
    shapes = rng.integers(3, 90, (60, 2))
    for size in (5, 32):
        for shape, found in zip(shapes, scaled(shapes, size), strict=True):
            assert shorter_side(np.zeros((*shape, 3), np.uint8), size).shape[:2] == tuple(found)


def test_centre():
    image = np.arange(6 * 9 * 3, dtype=np.uint8).reshape(6, 9, 3)
    assert (centre(image, 4) == image[1:5, 2:6]).all()
    assert (centre(image, 6) == image[:, 1:7]).all()
    enlarged = np.asarray(Image.fromarray(image).resize((15, 10), Image.Resampling.BILINEAR))
    assert (centre(image, 10) == enlarged[:, 2:12]).all()


# -- batches ----------------------------------------------------------------------------------------------------


@pytest.fixture
def table():
    images = np.random.default_rng(0).integers(0, 256, (50, 12, 16, 3), dtype=np.uint8)
    return Table(np.zeros(50, np.int64), ("a",), images=images)


def as_batch(images):
    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def test_test_batches_are_centre_crops(table):
    source = PixelSource(table, size=10, crop=8, augment=table.augment)
    rows = np.array([4, 4, 0])
    batch = source.test(rows)
    assert batch.dtype == torch.uint8
    assert torch.equal(batch, as_batch(table.images[rows, 1:11, 3:13]))
    assert source.test(rows, size=20).shape == (3, 3, 20, 20)
    assert len(source) == 50


def test_train_batches_are_the_crops_drawn(table):
    source = PixelSource(table, size=10, crop=8, augment=Augment(crop_scale=(0.3, 1.0)))
    rows = np.arange(50)
    batch = source.train(rows, generator(3))
    boxes, flips = draw_crops(np.full(50, 12), np.full(50, 16), Augment(crop_scale=(0.3, 1.0)), generator(3))
    assert 0 < flips.sum() < 50
    for i, (left, top, w, h) in enumerate(boxes):
        image = Image.fromarray(table.images[i]).crop((left, top, left + w, top + h))
        image = image.resize((8, 8), Image.Resampling.BILINEAR)
        pixels = np.asarray(image)[:, ::-1] if flips[i] else np.asarray(image)
        assert (batch[i].numpy() == pixels.transpose(2, 0, 1)).all()
    assert source.train(rows, generator(3), size=5).shape == (50, 3, 5, 5)


# -- resize, then crop ------------------------------------------------------------------------------------------

SHAPES = [(20, 31), (40, 26), (24, 24), (9, 60), (51, 50)]


@pytest.fixture
def mixed():
    """Decoded images of many shapes."""
    rng = np.random.default_rng(2)
    shapes = np.array(SHAPES * 8)
    images = [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]
    return images, Decoded(np.concatenate([i.reshape(-1) for i in images]), shapes, np.arange(len(images)))


def slow_resize_crop(image, resize, side, u):
    """Resize the whole image by Pillow, take a square at a place of it, flip."""
    height, width = image.shape[:2]
    short = max(resize, side)
    w, h = (short, round(height * short / width)) if width <= height else (round(width * short / height), short)
    resized = Image.fromarray(image).resize((w, h), Image.Resampling.BILINEAR) if (w, h) != (width, height) else image
    left, top = int(u[-3] * (w - side + 1)), int(u[-2] * (h - side + 1))
    part = np.asarray(resized)[top : top + side, left : left + side]
    return part[:, ::-1] if u[-1] < 0.5 else part


@pytest.mark.parametrize(("resize", "side"), [(24, 16), (24, 24), (12, 16), (40, 9)])
def test_resize_crop_equals_a_slow_loop(mixed, resize, side):
    images, held = mixed
    source = PixelSource(held, size=8, crop=side, augment=Augment(kind="resize_crop"), resize=resize)
    rows = np.random.default_rng(3).integers(0, 40, 64)
    batch = source.train(rows, generator(7)).numpy()
    u = torch.rand(64, DRAWS, generator=generator(7), dtype=torch.float64).numpy()
    for b, row in enumerate(rows):
        assert (batch[b] == slow_resize_crop(images[row], resize, side, u[b]).transpose(2, 0, 1)).all()


def test_resize_crop_takes_every_place_equally_often():
    sides = np.full(6000, 8), np.full(6000, 10)
    boxes, _ = draw_crops(*sides, Augment(kind="resize_crop", crop_scale=None), generator(), side=7)
    assert (boxes[:, 2:] == 7).all()
    counts = np.unique(boxes[:, :2], axis=0, return_counts=True)[1]
    assert len(counts) == 4 * 2
    assert 650 < counts.min() <= counts.max() < 850  # 750 each, σ = 26


def test_resize_crop_of_a_copy_at_its_size_is_cut_out(table):
    augment = Augment(kind="resize_crop", flip=False)
    given, plain = (PixelSource(table, size=8, crop=8, augment=augment, resize=resize) for resize in (12, None))
    batch = plain.train(np.arange(50), generator(1))
    assert torch.equal(batch, given.train(np.arange(50), generator(1)))
    boxes, _ = draw_crops(np.full(50, 12), np.full(50, 16), augment, generator(1), side=8)
    for i, (left, top, _, _) in enumerate(boxes):
        assert torch.equal(batch[i], as_batch(table.images[i : i + 1, top : top + 8, left : left + 8])[0])


def test_resize_crop_overrides_a_data_set_that_is_not_cropped():
    glyphs = load_table("glyphs", classes=4, per_class=3)
    source = PixelSource(glyphs, size=32, crop=20, augment=Augment(crop_scale=None, flip=False, kind="resize_crop"))
    first, second = (source.train(np.arange(12), generator(seed)) for seed in (1, 2))
    assert first.shape == (12, 3, 20, 20)
    assert not torch.equal(first, second)


# -- copies larger than the wanted size -------------------------------------------------------------------------


def test_test_images_of_a_larger_copy_are_taken_at_the_scale_of_resize(mixed):
    images, held = mixed
    source = PixelSource(held, size=16, crop=16, augment=Augment(crop_scale=None, flip=False), resize=20)
    rows = np.arange(40)
    batch = source.test(rows).numpy()
    for row in rows:
        height, width = images[row].shape[:2]
        w, h = round(width * 20 / min(height, width)), round(height * 20 / min(height, width))
        resized = np.asarray(Image.fromarray(images[row]).resize((w, h), Image.Resampling.BILINEAR))
        expected = resized[(h - 16) // 2 :, (w - 16) // 2 :][:16, :16]
        assert (batch[row] == expected.transpose(2, 0, 1)).all()
    assert torch.equal(source.train(rows, generator()), source.test(rows))  # where nothing is augmented


def test_whole_images_in_memory_are_taken_at_the_scale_of_resize(table):
    square = Table(table.labels, table.classes, images=table.images[:, :, :12])
    source = PixelSource(square, size=12, crop=12, augment=Augment(crop_scale=None, flip=False), resize=24)
    enlarged = np.asarray(Image.fromarray(square.images[5]).resize((24, 24), Image.Resampling.BILINEAR))
    assert torch.equal(source.test(np.array([5])), as_batch(enlarged[None, 6:18, 6:18]))


def test_random_resized_crops_are_cut_from_the_larger_copy(mixed):
    _, held = mixed
    rows = np.arange(40)
    larger, plain = (PixelSource(held, size=8, crop=8, augment=Augment(), resize=resize) for resize in (10, None))
    assert torch.equal(larger.train(rows, generator(4)), plain.train(rows, generator(4)))


# -- chance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("augment", [Augment(), Augment(kind="resize_crop"), Augment(crop_scale=None)], ids=str)
def test_slices_of_a_batch_together_are_the_batch(mixed, augment):
    source = PixelSource(mixed[1], size=8, crop=8, augment=augment, resize=12)
    rows = np.arange(40)[::-1]
    whole = source.train(rows, generator(9))
    slices = [source.train(rows, generator(9), only=slice(*ends)) for ends in ((0, 7), (7, 8), (8, 8), (8, 40))]
    assert torch.equal(whole, torch.cat(slices))


def test_the_generator_decides_alone(table):
    source = PixelSource(table, size=8, crop=8, augment=Augment())
    rows = np.arange(20)
    first = source.train(rows, generator(1))
    torch.rand(3)  # the global state is nobody's business
    np.random.rand(3)
    assert torch.equal(first, source.train(rows, generator(1)))
    assert not torch.equal(first, source.train(rows, generator(2)))
    g = generator(1)
    source.train(rows, g)
    assert not torch.equal(first, source.train(rows, g))  # the next batch draws on


def test_the_whole_image_at_its_own_size_is_left_alone():
    images = np.random.default_rng(0).integers(0, 256, (5, 9, 9, 3), dtype=np.uint8)
    source = PixelSource(
        Table(np.zeros(5, np.int64), ("a",), images=images),
        size=9,
        crop=9,
        augment=Augment(crop_scale=(1.0, 1.0), crop_ratio=(1.0, 1.0), flip=False),
    )
    assert torch.equal(source.train(np.arange(5), generator()), as_batch(images))


def test_flip_without_crop(table):
    source = PixelSource(table, size=12, crop=12, augment=Augment(crop_scale=None))
    rows = np.arange(50)
    plain, batch = source.test(rows), source.train(rows, generator())
    flipped = [not torch.equal(a, b) for a, b in zip(plain, batch, strict=True)]
    assert 10 < sum(flipped) < 40
    for i, turned in enumerate(flipped):
        assert torch.equal(batch[i], plain[i].flip(-1) if turned else plain[i])
    assert torch.equal(source.test(rows), plain)  # the source itself was not written to


def test_glyphs_come_as_they_are():
    glyphs = load_table("glyphs", classes=4, per_class=3)
    source = PixelSource(glyphs, size=32, crop=32, augment=glyphs.augment)
    g = generator()
    state = g.get_state()
    batch = source.train(np.array([7, 0]), g)
    assert torch.equal(batch, as_batch(glyphs.images[[7, 0]]))
    assert batch.is_contiguous()
    assert torch.equal(g.get_state(), state)
    batch.zero_()  # a batch is a copy
    assert torch.equal(source.test(np.array([7, 0])), as_batch(glyphs.images[[7, 0]]))


def test_from_the_cache_as_from_memory(tmp_path, picture):
    pixels = np.stack([picture(tmp_path / "p" / "a" / f"{i}.png", seed=i) for i in range(4)])
    files = load_table("folder", tmp_path / "p")
    arrays = Table(files.labels, files.classes, images=pixels)
    sources = [PixelSource(d, size=20, crop=10, augment=Augment()) for d in (decoded(files, resize=24), arrays)]
    rows = np.array([3, 1, 1])
    assert torch.equal(*[s.train(rows, generator(5)) for s in sources])
    assert torch.equal(*[s.test(rows) for s in sources])


def test_bad_settings(table, tmp_path):
    with pytest.raises(NearkinError, match="crop=0"):
        PixelSource(table, size=8, crop=0, augment=table.augment)
    with pytest.raises(NearkinError, match="resize=0"):
        PixelSource(table, size=8, crop=8, augment=table.augment, resize=0)
    files = Table(np.zeros(1, np.int64), ("a",), paths=(tmp_path / "x.jpg",))
    with pytest.raises(NearkinError, match="decoded first"):
        PixelSource(files, size=8, crop=8, augment=files.augment)
