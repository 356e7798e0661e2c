"""All that people call an image must come out as the same upright uint8 RGB, or as a clear error."""

import io
import zlib

import numpy as np
import pytest
from PIL import Image

from nearkin.data import images, images_from, read_image
from nearkin.errors import NearkinError


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.fixture
def smooth():
    coarse = np.random.default_rng(0).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((40, 32), Image.Resampling.BICUBIC)


def close(pixels, image, tolerance):
    assert pixels.dtype == np.uint8
    assert pixels.shape == (image.height, image.width, 3)
    assert np.abs(pixels.astype(int) - np.asarray(image).astype(int)).mean() < tolerance


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_exact_formats(smooth, kind):
    assert (read_image(encoded(smooth, kind)) == np.asarray(smooth)).all()


@pytest.mark.parametrize(("kind", "tolerance"), [("JPEG", 6), ("WEBP", 6), ("GIF", 12)])
def test_lossy_formats(smooth, kind, tolerance):
    close(read_image(encoded(smooth, kind)), smooth, tolerance)


def test_both_jpeg_decoders_agree(smooth):
    data = encoded(smooth, "JPEG", quality=90)
    ours, theirs = read_image(data).astype(int), np.asarray(Image.open(io.BytesIO(data))).astype(int)
    assert np.abs(ours - theirs).max() <= 3


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_cmyk_jpeg(smooth, mode):
    image = smooth.convert(mode)
    close(read_image(encoded(image, "JPEG", quality=95)), image.convert("RGB"), 6)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "1"])
def test_other_kinds_of_png(smooth, mode):
    image = smooth.convert(mode)
    assert (read_image(encoded(image, "PNG")) == np.asarray(image.convert("RGB"))).all()


def test_an_alpha_channel_that_hides_nothing_changes_nothing(smooth):
    image = smooth.copy()
    image.putalpha(255)
    assert (read_image(encoded(image, "PNG")) == np.asarray(smooth)).all()


def half_hidden(image):
    """The left half of an image hidden, the next column at half."""
    alpha = np.full((image.height, image.width), 255, np.uint8)
    alpha[:, : image.width // 2] = 0
    alpha[:, image.width // 2] = 128
    cut_out = image.copy()
    cut_out.putalpha(Image.fromarray(alpha))
    return cut_out


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_what_is_transparent_lies_on_white(smooth, kind):
    middle, opaque = smooth.width // 2, np.asarray(smooth).astype(int)
    cut_out = half_hidden(smooth)
    pixels = read_image(encoded(cut_out, kind, **({"lossless": True} if kind == "WEBP" else {}))).astype(int)
    assert (pixels[:, :middle] == 255).all()
    assert np.abs(pixels[:, middle] - (opaque[:, middle] + 255) / 2).max() <= 1.5
    assert (pixels[:, middle + 1 :] == opaque[:, middle + 1 :]).all()
    assert (images.as_pixels(half_hidden(smooth), "image 1")[:, :middle] == 255).all()


def test_one_transparent_colour_lies_on_white(smooth):
    grey = np.full((4, 6), 90, np.uint8)
    grey[:, :3] = 7
    for image, hidden in (
        (Image.fromarray(grey), 7),
        (Image.fromarray(grey).convert("RGB"), (7, 7, 7)),
        (Image.fromarray(grey).quantize(4), None),
    ):
        index = image.getpixel((0, 0)) if hidden is None else hidden
        pixels = read_image(encoded(image, "PNG", transparency=index))
        assert (pixels[:, :3] == 255).all()
        assert (pixels[:, 3:] == 90).all()
    assert (read_image(encoded(Image.fromarray(grey).convert("LA"), "PNG"))[:, :3] == 7).all()  # opaque


def test_sixteen_bits_are_cut_to_eight():
    grey = np.arange(0, 65536, 256, dtype=np.uint16).reshape(16, 16)
    pixels = read_image(encoded(Image.fromarray(grey), "PNG"))
    assert (pixels == np.arange(256, dtype=np.uint8).reshape(16, 16, 1)).all()


@pytest.mark.parametrize(("bits", "step"), [(8, 1), (16, 256), (31, 1 << 23)])
def test_whole_numbers_of_32_bits_are_not_black(bits, step):
    """The smallest range of 8, 16 or 31 bits that holds the largest value is the range of the image."""
    ramp = np.arange(256, dtype=np.int32).reshape(16, 16)
    image = Image.fromarray(ramp * step)
    assert image.mode == "I"
    assert (read_image(encoded(image, "TIFF")) == ramp[..., None]).all()


def test_negative_numbers_are_black():
    pixels = read_image(encoded(Image.fromarray(np.array([[-5, 0, 200]], np.int32)), "TIFF"))
    assert pixels[0, :, 0].tolist() == [0, 0, 200]


def test_a_dark_image_of_16_bits_stays_dark():
    dark = Image.fromarray(np.full((4, 4), 255, np.uint16))
    for kind in ("PNG", "TIFF"):
        assert read_image(encoded(dark, kind)).max() == 0
    assert images._rgb(Image.fromarray(np.full((4, 4), 255, np.int32)), "PNG").max() == 0  # Pillow 10 opens it so


@pytest.mark.parametrize("largest", [1, 255, 65535])
def test_floats_are_not_black(largest):
    ramp = np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16)
    pixels = read_image(encoded(Image.fromarray(ramp * largest), "TIFF"))
    assert np.abs(pixels[..., 0] - 255.0 * ramp).max() <= 1


def claiming(data, start, side, width):
    """The file with another height and width in its header."""
    number = side.to_bytes(width, "big")
    return data[:start] + number + number + data[start + 2 * width :]


@pytest.mark.parametrize("exif", [False, True])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_what_would_unpack_to_gigabytes_is_refused(tmp_path, smooth, kind, exif):
    told = Image.Exif()
    told[0x0112] = 6
    data = encoded(smooth, kind, **({"exif": told} if exif else {}))
    if kind == "JPEG":
        data = claiming(data, data.index(b"\xff\xc0") + 5, 60_000, 2)
    else:
        data = claiming(data, data.index(b"IHDR") + 4, 60_000, 4)
        end = data.index(b"IHDR") + 17
        data = data[:end] + zlib.crc32(data[end - 17 : end]).to_bytes(4, "big") + data[end + 4 :]
    (tmp_path / "bomb").write_bytes(data)
    with pytest.raises(NearkinError, match=r"bomb cannot be read: .*3,600,000,000 pixels.*178,956,970") as error:
        read_image(tmp_path / "bomb")
    assert "\n" not in str(error.value)


def test_the_limit_is_pillows(smooth, monkeypatch):
    data = encoded(smooth, "JPEG")  # 40 x 32 = 1,280 pixels
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 640)
    assert read_image(data).shape == (32, 40, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 639)
    with pytest.raises(NearkinError, match=r"1,280 pixels.*1,278"):
        read_image(data)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert read_image(data).shape == (32, 40, 3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied(smooth, kind, orientation):
    """A file says how its pixels lie; whatever it says, the picture is the same."""
    T = Image.Transpose
    laid = {
        1: None,
        2: T.FLIP_LEFT_RIGHT,
        3: T.ROTATE_180,
        4: T.FLIP_TOP_BOTTOM,
        5: T.TRANSPOSE,
        6: T.ROTATE_90,
        7: T.TRANSVERSE,
        8: T.ROTATE_270,
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = smooth if laid is None else smooth.transpose(laid)
    close(read_image(encoded(image, kind, exif=exif)), smooth, 6)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"hello, this is text", r"not an image \(its content begins with b'hello"), (None, "not exist")],
)
def test_what_is_no_image(tmp_path, content, reason):
    path = tmp_path / "x.jpg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(NearkinError, match=rf"{path} cannot be read: .*{reason}") as error:
        read_image(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_truncated(tmp_path, smooth, kind):
    data = encoded(smooth, kind)
    for end in (3, 20, len(data) // 2, len(data) - 40):
        (tmp_path / "x").write_bytes(data[:end])
        with pytest.raises(NearkinError, match="x cannot be read"):
            read_image(tmp_path / "x")


def test_a_folder_is_no_image(tmp_path):
    with pytest.raises(NearkinError, match="cannot be read"):
        read_image(tmp_path)


def test_images_from(tmp_path, picture):
    for name in ("b/2.png", "a.JPG", "b/c/1.bmp"):
        picture(tmp_path / name)
    (tmp_path / "b" / "notes.txt").write_text("no image")
    assert [p.relative_to(tmp_path).as_posix() for p in images_from(tmp_path)] == ["a.JPG", "b/2.png", "b/c/1.bmp"]
    assert images_from(tmp_path / "a.JPG") == [tmp_path / "a.JPG"]
    assert images_from([str(tmp_path / "a.JPG")]) == [tmp_path / "a.JPG"]
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "nowhere", []):
        with pytest.raises(NearkinError):
            images_from(nothing)
