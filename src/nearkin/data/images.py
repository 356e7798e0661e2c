"""Reading image files: always uint8 RGB, upright, or an error that names the file and the reason."""

import io
import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import simplejpeg
from PIL import Image, ImageOps, UnidentifiedImageError

from nearkin.data import modern
from nearkin.data.scan import EXTENSIONS, folders, images_below, images_in
from nearkin.errors import NearkinError

ORIENTATION = 0x0112  # the EXIF tag
COLOURS = ("1", "L", "P", "RGB")  # modes of Pillow in which one colour may be said to be transparent
BROKEN = (OSError, ValueError, SyntaxError, EOFError, IndexError)  # what Pillow raises for a damaged file


class UnreadableImage(NearkinError):
    """An image that cannot be read: its message names the image, `reason` says why, `advice` what to do."""

    def __init__(self, name: str, reason: str, advice: str = ""):
        super().__init__(f"image {name} cannot be read: {reason}" + (f"; {advice}" if advice else ""))
        self.reason = reason


def read_image(source: Path | str | bytes) -> np.ndarray:
    """The image of a file, or of a file's bytes, as (H, W, 3) uint8 RGB.

    EXIF orientation is applied, what is transparent is laid on white, 16 bits are cut to 8, of an animation the first
    frame is taken. AVIF and HEIC are read where their readers are installed (data/modern.py). Where
    pixels are numbers of 32 bits, the largest tells the range: 8, 16 or 31 bits for whole numbers; 1, 255 or 65,535 for
    fractions. Raises `UnreadableImage` when the file is absent, empty, damaged or no image, or when its header says
    more than 178,956,970 pixels, where Pillow stops, too (twice `PIL.Image.MAX_IMAGE_PIXELS`).
    """
    if isinstance(source, bytes):
        return decode(source, "in memory")
    try:
        data = Path(source).read_bytes()
    except FileNotFoundError:
        raise UnreadableImage(str(source), "the file does not exist") from None
    except OSError as error:
        raise UnreadableImage(str(source), error.strerror or str(error)) from error
    return decode(data, str(source))


def as_pixels(image: "str | Path | bytes | bytearray | memoryview | Image.Image | np.ndarray", name: str) -> np.ndarray:
    """An image in any form as (H, W, 3) uint8 RGB, the same from each of them.

    Parameters:
        image: a path, the bytes of an image file, a PIL image, or an array: uint8 (H, W, 3) RGB or (H, W) grey.
        name: what the message calls it, as in "image 3".
    """
    if isinstance(image, str | Path):
        return read_image(Path(image))
    if isinstance(image, bytes | bytearray | memoryview):
        return decode(bytes(image), f"{name} in memory")
    if isinstance(image, Image.Image):
        return _rgb(ImageOps.exif_transpose(image), image.format)
    if not hasattr(image, "__array__"):
        kinds = "a path, the bytes of an image file, a PIL image or an array"
        raise NearkinError(f"{name} is a {type(image).__name__}; it must be {kinds}")
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.shape[2:] not in ((), (3,)) or array.ndim < 2 or not array.size:
        wanted = "uint8 (H, W, 3) in RGB, or (H, W) in grey"
        raise NearkinError(f"{name} is an array of {array.dtype}, shape {array.shape}; it must be {wanted}")
    return array if array.ndim == 3 else np.repeat(array[..., None], 3, axis=2)


def decode(data: bytes, name: str) -> np.ndarray:
    """The image of a file's bytes as (H, W, 3) uint8 RGB; `name` stands in the message of `UnreadableImage`."""
    if not data:
        raise UnreadableImage(name, "the file is empty")
    try:
        if data.startswith(b"\xff\xd8") and _upright(data):
            try:
                height, width, *_ = simplejpeg.decode_jpeg_header(data)
                if height * width > (_limit() or height * width):
                    raise Image.DecompressionBombError(f"{height * width} pixels")
                return simplejpeg.decode_jpeg(data)
            except ValueError:  # CMYK, or damaged: Pillow reads it, or says what is wrong
                pass
        if (kind := modern.kind_of(data)) is not None:
            if (reason := modern.lacking(kind)) is not None:
                raise UnreadableImage(name, reason)
            modern.ready(kind)
        with Image.open(io.BytesIO(data)) as image:
            return _rgb(ImageOps.exif_transpose(image), image.format)
    except UnreadableImage:
        raise
    except Image.DecompressionBombError as error:  # its words begin with the number of pixels
        pixels = int(re.findall(r"\d+", str(error))[0])
        reason = f"its header says {pixels:,} pixels, at most {_limit():,} are unpacked: make it smaller"
        raise UnreadableImage(name, reason) from error
    except UnidentifiedImageError:
        raise UnreadableImage(name, f"it is not an image (its content begins with {data[:12]!r})") from None
    except BROKEN as error:
        raise UnreadableImage(name, " ".join(str(error).split()).rstrip(".") or type(error).__name__) from error


def image_shape(path: Path | str) -> tuple[int, int]:
    """Height and width of what `read_image` gives for a file, mostly from the file's first bytes alone.

    Only JPEG and PNG tell their size and their orientation in a way that is the same for every program; any other file
    is decoded. Raises `UnreadableImage` as `read_image` does, but does not notice what is wrong further inside.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(65536)
            if head.startswith(b"\xff\xd8") and _upright(head):
                try:
                    height, width, *_ = simplejpeg.decode_jpeg_header(head)
                except ValueError:  # the header is longer
                    height, width, *_ = simplejpeg.decode_jpeg_header(head + file.read())
                if height * width <= (_limit() or height * width):
                    return height, width
        with Image.open(path) as image:
            if image.format in ("JPEG", "PNG"):
                width, height = image.size
                return (width, height) if image.getexif().get(ORIENTATION, 1) >= 5 else (height, width)
    except (*BROKEN, Image.DecompressionBombError):
        pass  # read_image says what is wrong
    return read_image(path).shape[:2]


def images_from(source: Path | str | Iterable[Path | str]) -> list[Path]:
    """The paths of images: those in a folder and all folders below it, sorted; a single file; or a list of files.

    Links are followed and hidden folders ignored, as `folder` does it (data/scan.py). Only a folder is searched by the
    endings of names. A NearkinError when there is nothing, or `source` does not exist; the files of a list are not
    looked at.
    """
    if not isinstance(source, (str, Path)):
        paths = [Path(path) for path in source]
        if not paths:
            raise NearkinError("an empty list of images; at least one is needed")
        return paths
    folder = Path(source).expanduser()
    if os.path.isfile(folder):
        return [folder]
    if not os.path.isdir(folder):
        raise NearkinError(f"{folder} does not exist; give an image, a folder of images or a list of files")
    paths = sorted([*images_in(folder), *(path for inner in folders(folder) for path in images_below(inner))])
    if not paths:
        raise NearkinError(f"no images in {folder}; looked for {', '.join(sorted(EXTENSIONS))}")
    return paths


def _upright(data: bytes) -> bool:
    """Whether a JPEG has no EXIF orientation, or the upright one. Its header is read only when it has EXIF at all."""
    if b"Exif\0\0" not in data[:65536]:
        return True
    with Image.open(io.BytesIO(data)) as image:
        return image.getexif().get(ORIENTATION, 1) == 1


def _limit() -> int | None:
    """The number of pixels above which Pillow, too, refuses to open an image; None: none."""
    return None if Image.MAX_IMAGE_PIXELS is None else 2 * Image.MAX_IMAGE_PIXELS


def is_transparent(data: bytes) -> bool:
    """Does read_image lay the image of a file's bytes on white, where nearkin once showed its hidden colours? False of
    what cannot be read, and of AVIF and HEIC, which it could not read then."""
    if data.startswith((b"\xff\xd8", b"BM")) or modern.kind_of(data) is not None:
        return False
    try:
        with Image.open(io.BytesIO(data)) as image:
            return _seen_through(image) is not None
    except (*BROKEN, Image.DecompressionBombError):
        return False


def _seen_through(image: Image.Image) -> Image.Image | None:
    """An image with at least one pixel that is not opaque, as RGBA; None: it is opaque."""
    if image.mode not in ("LA", "PA", "RGBA") and not (image.mode in COLOURS and "transparency" in image.info):
        return None
    rgba = image.convert("RGBA")
    return rgba if rgba.getchannel("A").getextrema()[0] < 255 else None  # type: ignore[operator]


def _rgb(image: Image.Image, kind: str | None) -> np.ndarray:
    """The pixels of an image of a format (`kind`: PNG, TIFF, ...); what is transparent is laid on white."""
    if (rgba := _seen_through(image)) is not None:
        image = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
    if image.mode != "F" and not image.mode.startswith("I"):
        return np.asarray(image.convert("RGB"))
    values = np.asarray(image)  # one number per pixel; convert() would clip at 255
    if image.mode == "F":
        values = np.nan_to_num(values)
        grey = values * (255 if values.max() <= 1 else 1 if values.max() <= 255 else 1 / 256)
    elif image.mode != "I" or kind == "PNG":  # I;16 and its like; Pillow 10 opens a PNG of 16 bits as I
        grey = values >> 8
    else:
        grey = values >> (0 if values.max() < 1 << 8 else 8 if values.max() < 1 << 16 else 23)
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, axis=2)
