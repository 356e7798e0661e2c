"""`nearkin.embed`: paths, bytes, PIL images and arrays, mixed freely; all of one image give one embedding."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import nearkin
from nearkin.errors import NearkinError

WORDS = {"dataset": "glyphs", "data.classes": 16, "data.per_class": 6, "dim": 4, "epochs": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return nearkin.train(WORDS, runs=tmp_path_factory.mktemp("runs"), test=False)


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8)


def encoded(image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


def test_all_kinds_of_one_image(run, pixels, tmp_path):
    image = Image.fromarray(pixels)
    image.save(tmp_path / "a.png")
    content = encoded(image)
    kinds = [
        tmp_path / "a.png",
        str(tmp_path / "a.png"),
        content,
        bytearray(content),
        memoryview(content),
        image,
        pixels,
    ]
    z = nearkin.embed(run, kinds)
    assert z.shape == (7, 4)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(z, np.repeat(z[:1], 7, axis=0))
    for kind in kinds:  # alone, it is a list of one
        np.testing.assert_allclose(nearkin.embed(run, kind), z[:1], atol=1e-6)


def test_grey_images(run, pixels):
    grey = pixels[..., 0]
    z = nearkin.embed(
        run, [grey, Image.fromarray(grey), np.repeat(grey[..., None], 3, axis=2), encoded(Image.fromarray(grey))]
    )
    np.testing.assert_array_equal(z, np.repeat(z[:1], 4, axis=0))


def test_an_image_is_upright_as_from_its_file(run, pixels):
    turned = Image.Exif()
    turned[0x0112] = 6
    content = encoded(Image.fromarray(pixels), exif=turned)
    with Image.open(io.BytesIO(content)) as image:
        np.testing.assert_array_equal(nearkin.embed(run, image), nearkin.embed(run, content))


def test_a_stack_and_a_generator(run, pixels):
    stack = np.stack([pixels, pixels[::-1]])
    np.testing.assert_array_equal(nearkin.embed(run, stack), nearkin.embed(run, (image for image in stack)))


def test_a_run_by_its_name(run, pixels):
    there = {"runs": run.path.parent}
    np.testing.assert_array_equal(nearkin.embed(run.hash[:6], pixels, **there), nearkin.load(run).embed(pixels))


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((4, 4, 3), np.float32), "an array of float32, shape (4, 4, 3); it must be uint8"),
        (np.zeros((3, 40, 50), np.uint8), "an array of uint8, shape (3, 40, 50); it must be uint8"),
        (np.zeros((4, 4, 4), np.uint8), "shape (4, 4, 4)"),
        (np.zeros((0, 4, 3), np.uint8), "shape (0, 4, 3)"),
        (np.zeros((2, 1, 4, 4, 3), np.uint8), "shape (2, 1, 4, 4, 3)"),
        (torch.zeros(3, 4, 4), "an array of float32, shape (3, 4, 4)"),
        (7, "is a int; it must be a path, the bytes of an image file, a PIL image or an array"),
        (None, "is a NoneType"),
        (b"no image", "it is not an image"),
        (b"", "the file is empty"),
        ("nowhere.png", "nowhere.png cannot be read: the file does not exist"),
    ],
    ids=repr,
)
def test_what_is_no_image(run, pixels, image, words):
    with pytest.raises(NearkinError) as raised:
        nearkin.embed(run, [pixels, image])
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    if not isinstance(image, str):
        assert "image 2 " in str(raised.value)


def test_nothing(run):
    with pytest.raises(NearkinError, match="there are no images to embed"):
        nearkin.embed(run, [])
    with pytest.raises(NearkinError, match="images=7: a path, bytes"):
        nearkin.embed(run, 7)
