import errno
import io
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from nearkin.data import Decoded
from nearkin.data.source import PixelSource
from nearkin.data.table import Augment, Table
from nearkin.errors import NearkinError
from nearkin.models import FeatureSource, build_model, cut


class CountingPixels:
    """70 random images (more than one batch); a random crop is the image rolled by a drawn amount."""

    def __init__(self, count: int = 70, calls: int | None = None):
        rng = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=rng)
        self.tested, self.budget = 0, calls

    def __len__(self):
        return len(self.images)

    def test(self, indices):
        self.tested += len(indices)
        if self.budget is not None and self.tested > self.budget:
            raise KeyboardInterrupt
        return self.images[indices]

    def train(self, indices, generator, size=None):
        assert size in (None, 32)
        shift = torch.randint(1, 32, (len(indices),), generator=generator)
        return torch.stack([self.images[i].roll(int(s), -1) for i, s in zip(indices, shift, strict=True)])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return build_model(backbone="convnet", dim=8, cut="block3")


def source(pixels, model, tmp_path, **settings):
    return FeatureSource(pixels, model, data_hash="abc", cache=tmp_path, **settings)


def files(tmp_path):
    return sorted(p.name for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock")


def rows_of(features):
    """All views of all images, image after image: (R, *F)."""
    further = np.split(features.more, features.first[1:]) if features.more is not None else [[]] * len(features)
    return np.stack([row for plain, more in zip(features.plain, further, strict=True) for row in (plain, *more)])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_views(tmp_path, model):
    pixels = CountingPixels()
    features = source(pixels, model, tmp_path, views=3)
    assert rows_of(features).shape == (70 * 3, 128, 4, 4)
    assert rows_of(features).dtype == np.float16
    indices = np.array([69, 0, 5])
    plain = model.front(pixels.images[indices])
    close = {"rtol": 2e-3, "atol": 2e-3}
    assert features.test(indices).dtype == torch.float32
    torch.testing.assert_close(features.test(indices), plain, **close)
    flipped = torch.tensor(rows_of(features)[3 * indices + 1]).float()
    torch.testing.assert_close(flipped, model.front(pixels.images[indices].flip(-1)), **close)
    for i, row in zip(indices, rows_of(features)[3 * indices + 2], strict=True):  # one of the 31 rolls
        rolls = model.front(torch.stack([pixels.images[i].roll(s, -1) for s in range(1, 32)]))
        assert (rolls - torch.tensor(row).float()).abs().amax((1, 2, 3)).min() < 2e-3
    torch.testing.assert_close(model.back(features.test(indices)).z, model(pixels.images[indices]).z, **close)


def test_without_flipping_the_second_view_is_a_crop(tmp_path, model):
    pixels = CountingPixels()
    features = source(pixels, model, tmp_path, views=2, flip=False)
    flipped = model.front(pixels.images[:1].flip(-1))[0]
    assert (torch.tensor(rows_of(features)[1]).float() - flipped).abs().max() > 0.1


def test_training_draws_every_view_from_the_generator_alone(tmp_path, model):
    features = source(CountingPixels(), model, tmp_path, views=3)
    indices = np.arange(70).repeat(4)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    once, again, other = (features.train(indices, generator(s)) for s in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    views = torch.tensor(rows_of(features).reshape(70, 3, -1)).float()[indices]  # (B, 3, F)
    hits = (once.flatten(1)[:, None] == views).all(2)
    assert hits.any(1).all()
    assert hits.float().mean(0).min() > 0.2  # each a third


def test_only_the_trained_images_get_all_views(tmp_path, model):
    pixels = CountingPixels()
    features = source(pixels, model, tmp_path, views=3, augmented=np.arange(10, 70, 2))
    assert len(rows_of(features)) == 40 + 30 * 3
    for i in (0, 10, 11, 68, 69):
        torch.testing.assert_close(features.test([i]), model.front(pixels.images[[i]]), rtol=2e-3, atol=2e-3)
        drawn = {features.train([i], generator(s)).sum().item() for s in range(20)}
        assert len(drawn) == (3 if i in (10, 68) else 1)


def test_the_files_are_reused_and_found_by_their_content(tmp_path, model):
    first = source(CountingPixels(), model, tmp_path)
    assert len(files(tmp_path)) == 2  # plain and further views
    pixels = CountingPixels()
    second = source(pixels, model, tmp_path)
    assert pixels.tested < 70  # a few, for the names
    assert np.array_equal(rows_of(first), rows_of(second))

    other = CountingPixels()
    other.images = other.images.flip(2)
    source(other, model, tmp_path)  # other pixels
    assert len(files(tmp_path)) == 4
    source(CountingPixels(), model, tmp_path, views=2)  # other views, the same plain ones
    source(CountingPixels(), model, tmp_path, flip=False)
    assert len(files(tmp_path)) == 6
    FeatureSource(CountingPixels(), model, data_hash="abd", cache=tmp_path)
    assert len(files(tmp_path)) == 8
    with torch.no_grad():
        model.backbone.block4[0].weight.add_(1)  # behind the cut: the same front
        model.head.weight.add_(1)
    source(CountingPixels(), model, tmp_path)
    assert len(files(tmp_path)) == 8
    with torch.no_grad():
        model.backbone.block1[1].running_mean.add_(1)
    source(CountingPixels(), model, tmp_path)
    assert len(files(tmp_path)) == 10


def test_divisions_of_the_data_share_the_plain_views(tmp_path, model):
    source(CountingPixels(), model, tmp_path, augmented=np.arange(10))
    pixels = CountingPixels()
    source(pixels, model, tmp_path, augmented=np.array([3, 60, 69]))
    assert pixels.tested < 20  # three that train, and a few for the names
    assert len(files(tmp_path)) == 3


def test_views_are_made_64_images_at_a_time_in_a_fixed_order(tmp_path, model):
    """The bits of the features: those of every stored run."""
    training = np.array([3, 5, 66, 69])
    features = source(CountingPixels(), model, tmp_path, views=3, augmented=training)
    pixels, chance, expected = CountingPixels(), generator(), []
    for place in (training[:2], training[2:]):  # of images 0 to 63 and 64 to 69
        mirrored = model.front(pixels.images[place].flip(-1)).half()
        crops = model.front(pixels.train(place, chance)).half()
        expected += [row for pair in zip(mirrored, crops, strict=True) for row in pair]
    assert np.array_equal(features.more, torch.stack(expected).detach().numpy())


def test_deterministic(tmp_path, model):
    rows = [rows_of(source(CountingPixels(), model, tmp_path / name)) for name in "ab"]
    assert np.array_equal(*rows)


def test_a_damaged_file_is_made_again(tmp_path, model):
    rows = np.array(rows_of(source(CountingPixels(), model, tmp_path)))
    path = tmp_path / "features" / files(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:1000])
    assert np.array_equal(rows_of(source(CountingPixels(), model, tmp_path)), rows)


@pytest.mark.parametrize("file", ["plain", "more"])
@pytest.mark.parametrize("how", ["removed", "emptied", "truncated", "flipped", "header", "sum", "folder", "link"])
def test_whatever_happens_to_a_file_the_features_are_the_same(tmp_path, model, how, file):
    features = source(CountingPixels(), model, tmp_path)
    before, path = rows_of(features), Path(getattr(features, file).filename)
    content = bytearray(path.read_bytes())
    place = {"header": content.index(b"<f2"), "sum": len(content) - 1}.get(how, len(content) // 2)
    content[place] ^= 2  # in the header: >f2, the bytes of a number swapped
    path.unlink()
    if how == "truncated":
        path.write_bytes(content[: len(content) - 5])
    elif how == "folder":
        path.mkdir()
    elif how != "removed":
        (tmp_path / "elsewhere").write_bytes(b"" if how == "emptied" else content)
        path.symlink_to(tmp_path / "elsewhere") if how == "link" else shutil.move(tmp_path / "elsewhere", path)
    pixels = CountingPixels()
    assert np.array_equal(rows_of(source(pixels, model, tmp_path)), before)
    assert pixels.tested >= len(pixels)  # computed again, not read
    assert not path.is_symlink()


def test_a_file_is_compared_with_its_sum_once_in_a_process(tmp_path, model, monkeypatch):
    source(CountingPixels(), model, tmp_path)
    compared = []
    has_its_sum = cut._has_its_sum
    monkeypatch.setattr(cut, "_verified", set())
    monkeypatch.setattr(cut, "_has_its_sum", lambda *args: compared.append(args) or has_its_sum(*args))
    for _ in range(3):
        source(CountingPixels(), model, tmp_path)
    assert len({path for path, _ in compared}) == len(compared) == 2


def test_a_file_without_a_sum_is_an_older_one_and_is_read(tmp_path, model):
    path = Path(source(CountingPixels(), model, tmp_path).plain.filename)
    path.write_bytes(path.read_bytes()[: -cut.SUM.size])
    pixels = CountingPixels()
    source(pixels, model, tmp_path)
    assert pixels.tested < len(pixels)


def test_an_interruption_leaves_nothing(tmp_path, model):
    with pytest.raises(KeyboardInterrupt):
        source(CountingPixels(calls=68), model, tmp_path)  # in the second batch
    assert files(tmp_path) == []
    assert len(source(CountingPixels(), model, tmp_path)) == 70


def test_a_full_disk_leaves_nothing_and_is_told(tmp_path, model, monkeypatch):
    class Full(io.FileIO):
        def write(self, data):
            if len(data) > 1000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    monkeypatch.setattr(cut, "open", Full, raising=False)
    with pytest.raises(NearkinError, match="disk is full"):
        source(CountingPixels(), model, tmp_path)
    assert files(tmp_path) == []


def test_two_workers_compute_once(tmp_path, model):
    pixels = [CountingPixels() for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda p: source(p, model, tmp_path), pixels))
    assert sorted(p.tested >= 70 for p in pixels) == [False, True]


def test_pixel_source_with_another_training_crop(tmp_path):
    """Crops for the file are taken at the test size, so that all views have one shape."""
    images = np.random.default_rng(0).integers(0, 256, (5, 40, 48, 3), np.uint8)
    table = Table(labels=np.zeros(5, int), classes=("a",), images=images)
    pixels = PixelSource(table, size=32, crop=24, augment=Augment())
    model = build_model(backbone="convnet", dim=4, cut="block2")
    features = FeatureSource(pixels, model, data_hash="x", views=4, cache=tmp_path)
    assert rows_of(features).shape == (20, 64, 8, 8)
    assert model.back(features.train(np.array([0, 4]), generator())).z.shape == (2, 4)


@pytest.mark.parametrize(
    ("cut_at", "settings", "words"), [("none", {}, "cut='none'"), ("all", {"views": 0}, "views=0")]
)
def test_bad_settings(tmp_path, cut_at, settings, words):
    with pytest.raises(NearkinError, match=words):
        source(CountingPixels(), build_model(backbone="convnet", cut=cut_at), tmp_path, **settings)


def test_features_beyond_half_precision_are_an_error(tmp_path, model):
    with torch.no_grad():
        model.backbone.block3[1].weight.fill_(1e6)
    with pytest.raises(NearkinError, match="float16"):
        source(CountingPixels(), model, tmp_path)
    assert files(tmp_path) == []


def test_a_cache_that_cannot_be_written(tmp_path, model):
    (tmp_path / "file").write_text("")
    with pytest.raises(NearkinError, match="cannot write"):
        source(CountingPixels(), model, tmp_path / "file")


def test_larger_copies_are_other_images_even_where_the_few_that_are_looked_at_are_not(tmp_path):
    """The first, the last and two more images are equal under both sizes of the copy; one other is not."""
    rng = np.random.default_rng(0)
    model = build_model(backbone="convnet", dim=8, cut="block3")
    names = set()
    for keep in (40, 64):
        sides = [keep if i == 1 else 40 for i in range(9)]
        pixels = [rng.integers(0, 255, (40, 40, 3), dtype=np.uint8).repeat(2, 0).repeat(2, 1)[:s, :s] for s in sides]
        images = Decoded(
            np.concatenate([image.reshape(-1) for image in pixels]), np.array([[s, s] for s in sides]), np.arange(9)
        )
        rng = np.random.default_rng(0)
        one = PixelSource(images, size=32, crop=32, augment=Augment(), resize=32)
        names.add(source(one, model, tmp_path, views=3)._key("abc"))
    assert len(names) == 2
