"""Reading image files: always uint8 RGB, upright, or an error that names the file and the reason."""

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import simplejpeg
from PIL import Image, ImageOps, UnidentifiedImageError

from nearkin.errors import NearkinError

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"})
ORIENTATION = 0x0112                                        # the EXIF tag


class UnreadableImage(NearkinError):
    """An image that cannot be read: its message names the image, `reason` says why."""

    def __init__(self, name: str, reason: str):
        super().__init__(f"image {name} cannot be read: {reason}")
        self.reason = reason


def read_image(source: Path | str | bytes) -> np.ndarray:
    """The image of a file, or of a file's bytes, as (H, W, 3) uint8 RGB.

    EXIF orientation is applied, alpha is dropped, 16 bits are cut to 8, of an animation the first frame is taken.
    Raises `UnreadableImage` when the file is absent, empty, damaged or no image.
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


def decode(data: bytes, name: str) -> np.ndarray:
    """The image of a file's bytes as (H, W, 3) uint8 RGB; `name` stands in the message of `UnreadableImage`."""
    if not data:
        raise UnreadableImage(name, "the file is empty")
    try:
        if data.startswith(b"\xff\xd8") and _upright(data):
            try:
                return simplejpeg.decode_jpeg(data)
            except ValueError:                              # CMYK, or damaged: Pillow reads it, or says what is wrong
                pass
        with Image.open(io.BytesIO(data)) as image:
            return _rgb(ImageOps.exif_transpose(image))
    except UnidentifiedImageError:
        raise UnreadableImage(name, f"it is not an image (its content begins with {data[:12]!r})") from None
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, Image.DecompressionBombError) as error:
        raise UnreadableImage(name, " ".join(str(error).split()) or type(error).__name__) from error


def images_from(source: Path | str | Iterable[Path | str]) -> list[Path]:
    """The paths of images: those in a folder and all folders below it, sorted; a single file; or a list of files.

    Only a folder is searched by the endings of names. A NearkinError when there is nothing, or `source` does not exist;
    the files of a list are not looked at.
    """
    if not isinstance(source, (str, Path)):
        paths = [Path(path) for path in source]
        if not paths:
            raise NearkinError("an empty list of images; at least one is needed")
        return paths
    folder = Path(source).expanduser()
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise NearkinError(f"{folder} does not exist; give an image, a folder of images or a list of files")
    paths = sorted(path for path in folder.rglob("*") if is_image(path))
    if not paths:
        raise NearkinError(f"no images in {folder}; looked for {', '.join(sorted(EXTENSIONS))}")
    return paths


def is_image(path: Path) -> bool:
    """Whether a path is an image, by its name alone; hidden files (the ._x.jpg that macOS leaves behind) are not."""
    return path.suffix.lower() in EXTENSIONS and not path.name.startswith(".")


def _upright(data: bytes) -> bool:
    """Whether a JPEG has no EXIF orientation, or the upright one. Its header is read only when it has EXIF at all."""
    if b"Exif\0\0" not in data[:65536]:
        return True
    with Image.open(io.BytesIO(data)) as image:
        return image.getexif().get(ORIENTATION, 1) == 1


def _rgb(image: Image.Image) -> np.ndarray:
    if image.mode.startswith("I"):                          # 16 bits per pixel; convert() would clip at 255
        grey = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    return np.asarray(image.convert("RGB"))
