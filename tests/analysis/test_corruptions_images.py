"""The nine corruptions against their stated distributions, on images of one colour and on noise."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage, stats

from nearkin.analysis._corrupt import CORRUPTIONS, corrupt, corrupt_batch
from nearkin.errors import NearkinError

MANY = 150


def grey(value=100, side=32):
    return np.full((side, side, 3), value, np.uint8)


def picture(side=32, seed=0):
    """Smooth colours, so that shifted and warped copies differ."""
    random = np.random.default_rng(seed).uniform(0, 255, (6, 6, 3)).astype(np.uint8)
    return np.asarray(Image.fromarray(random).resize((side, side), Image.Resampling.BICUBIC))


def drawn(name, image, many=MANY, seed=0):
    return np.stack([corrupt(name, image, seed, row) for row in range(many)]).astype(int)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(32, 32), (17, 40)])
def test_uint8_shape_seed_and_image(name, shape):
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), dtype=np.uint8)
    before = image.copy()
    first = corrupt(name, image, 0, 5)
    assert (first.dtype, first.shape) == (np.uint8, image.shape)
    np.testing.assert_array_equal(image, before)
    np.testing.assert_array_equal(first, corrupt(name, image, 0, 5))
    draws = [*((seed, 5) for seed in range(1, 9)), *((0, row) for row in range(6, 14))]
    others = [corrupt(name, image, seed, row) for seed, row in draws]
    assert any((first != other).any() for other in others[:8])  # another seed
    assert any((first != other).any() for other in others[8:])  # another image


def test_a_batch_is_its_images_one_by_one():
    images = torch.from_numpy(np.stack([picture(seed=i) for i in range(3)]).transpose(0, 3, 1, 2).copy())
    found = corrupt_batch("gaussian_noise", images, 7, np.array([4, 9, 2]))
    assert (found.dtype, found.shape) == (torch.uint8, images.shape)
    for i, row in enumerate([4, 9, 2]):
        alone = corrupt("gaussian_noise", picture(seed=i), 7, row)
        np.testing.assert_array_equal(found[i].numpy(), alone.transpose(2, 0, 1))


def test_there_are_nine_and_no_tenth():
    assert len(CORRUPTIONS) == 9
    with pytest.raises(NearkinError, match="unknown corruption 'gauss_blur': did you mean gaussian_blur"):
        corrupt("gauss_blur", grey(), 0, 0)


def test_gaussian_noise():
    """σ uniform in 0..25.5, one value per pixel for all channels."""
    found = drawn("gaussian_noise", grey(128)) - 128
    assert (found[..., 0] == found[..., 1]).all()
    assert (found[..., 0] == found[..., 2]).all()
    deviations = found[..., 0].reshape(MANY, -1).std(1)
    assert stats.kstest(deviations, stats.uniform(0, 25.5).cdf).pvalue > 0.01
    assert deviations.max() < 25.5 * 1.1
    assert abs(found.mean()) < 0.5
    noisy = found[deviations.argmax(), ..., 0].ravel() / deviations.max()
    assert stats.kurtosis(noisy) == pytest.approx(0, abs=0.5)
    assert drawn("gaussian_noise", grey(250)).max() == 255  # clipped, never around


def test_salt_and_pepper():
    """5 % of the pixels, grey values of 255·Beta(½, ½)."""
    found = drawn("salt_and_pepper", grey(100), 60)
    assert (found[..., 0] == found[..., 1]).all()
    assert (found[..., 0] == found[..., 2]).all()
    changed = found[..., 0] != 100
    assert changed.mean() == pytest.approx(0.05, abs=0.003)
    expected = np.rint(255 * np.random.default_rng(5).beta(0.5, 0.5, 20_000))
    assert stats.ks_2samp(found[..., 0][changed], expected).statistic < 0.03


def test_brightness():
    """One whole number of -50..50 for the whole image."""
    shifts = drawn("uniform_noise", grey(100, 4), 1500)
    assert (np.ptp(shifts.reshape(1500, -1), axis=1) == 0).all()
    shifts = shifts[:, 0, 0, 0] - 100
    assert (shifts.min(), shifts.max()) == (-50, 50)
    assert stats.chisquare(np.bincount(shifts + 50, minlength=101)).pvalue > 0.01
    assert drawn("uniform_noise", grey(20)).min() == 0


def test_cutout():
    """Two grey rectangles, height and width of each random, at most a fifth; their middle is anywhere in the image."""
    found = drawn("cutout", grey(0, 50), 600)
    assert set(np.unique(found)) == {0, 128}
    filled = found[..., 0] == 128
    share = filled.mean((1, 2))
    assert share.min() > 0
    assert share.max() <= 2 * 0.2**2 + 1e-9
    one = 0.1 - 0.2**2 / 3 / 4  # the mean length inside the image of a side that is uniform in 0..0.2
    assert share.mean() == pytest.approx(2 * one**2 - one**4, rel=0.06)
    sizes = []
    for each in filled[:, 5:-5, 5:-5]:
        parts = ndimage.find_objects(ndimage.label(each)[0])
        if len(parts) == 2:  # they do not touch
            sizes += [[span.stop - span.start for span in part] for part in parts]
    heights, widths = np.array(sizes).T
    assert (heights.min(), heights.max(), widths.min(), widths.max()) == (1, 10, 1, 10)
    assert abs(np.corrcoef(heights, widths)[0, 1]) < 0.15  # drawn one by one
    where = filled.mean(0)
    assert where[5:-5, 5:-5].std() < 0.03  # the middle of the image is hit evenly
    assert where[0, 0] < 0.6 * where[25, 25]


def test_coarse_dropout():
    """Up to 5 % of the cells of a mask at 5 to 50 % of the size are black."""
    found = drawn("coarse_dropout", grey(90, 64), 600)
    assert set(np.unique(found)) == {0, 90}
    black = (found == 0).all(-1)
    assert ((found == 0).any(-1) == black).all()  # all channels together
    share = black.mean((1, 2))
    assert share.mean() == pytest.approx(0.025, abs=0.004)
    assert np.quantile(share, 0.9) < 0.08
    runs = [size for each in black[:150] for size in np.bincount(ndimage.label(each)[0].ravel())[1:]]
    assert min(runs) >= 2  # cells are larger than pixels: at least 2 × 2, cut unevenly
    assert max(runs) > 60


def angles(images, side):
    """The direction of the bright half of each image, in degrees."""
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    inside = x**2 + y**2 < (side / 2.2) ** 2
    mass = images[..., 0] * inside
    return np.degrees(np.arctan2((mass * y).sum((1, 2)), (mass * x).sum((1, 2))))


def test_rotation():
    """Uniform in ±30°, symmetric beyond the border, so that no black comes in."""
    half = np.zeros((64, 64, 3), np.uint8)
    half[:, 32:] = 200
    turned = angles(drawn("rotation", half, 200), 64)
    assert np.abs(turned).max() < 31
    assert stats.kstest(turned, stats.uniform(-30, 60).cdf).pvalue > 0.01
    assert drawn("rotation", grey(90), 20).min() == 90


def test_perspective():
    """Every corner moves inwards by |N(0, s)| of the side, s uniform in 0.05..0.15: read off from coordinates."""
    y, x = np.mgrid[:64, :64]
    image = np.stack([4 * x, 4 * y, 0 * x], -1).astype(np.uint8)
    found = drawn("perspective", image, 300)[..., :2] / 252
    inwards = np.stack(
        [
            found[:, 0, 0, 0],
            found[:, 0, 0, 1],
            1 - found[:, 0, -1, 0],
            found[:, 0, -1, 1],
            found[:, -1, 0, 0],
            1 - found[:, -1, 0, 1],
            1 - found[:, -1, -1, 0],
            1 - found[:, -1, -1, 1],
        ],
        1,
    )
    s = np.random.default_rng(0).uniform(0.05, 0.15, 4000)
    expected = np.abs(np.random.default_rng(1).normal(0, s))
    assert stats.ks_2samp(inwards.ravel(), expected).statistic < 0.06
    assert inwards.mean() == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.06)
    assert drawn("perspective", grey(90), 100).min() > 80  # corners move inwards: nothing black comes in


def test_gaussian_blur():
    """σ uniform in 1..3: the variance of a blurred line is σ²."""
    line = np.zeros((48, 48, 3), np.uint8)
    line[:, 24] = 255
    profile = drawn("gaussian_blur", line, 200)[:, 24, :, 0]
    x = np.arange(48)
    centre = (profile * x).sum(1) / profile.sum(1)
    sigma = np.sqrt((profile * (x - centre[:, None]) ** 2).sum(1) / profile.sum(1))
    assert stats.kstest(sigma, stats.uniform(1, 2).cdf).statistic < 0.12
    assert 0.95 < sigma.min() < 1.2
    assert 2.8 < sigma.max() < 3.1


def test_jpeg():
    """Quality round(1 + 99 (1 - c/101)), c uniform in 80..95: 7 to 22."""
    image = picture(64)

    def written(quality):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "jpeg", quality=quality)
        return np.asarray(Image.open(file)).tobytes()

    known = {written(quality): quality for quality in range(1, 101)}
    found = [known.get(corrupt("jpeg", image, 0, row).tobytes()) for row in range(400)]
    assert None not in found
    assert (min(found), max(found)) == (7, 22)
    assert np.mean(found) == pytest.approx(1 + 99 * (1 - 87.5 / 101), abs=0.6)
