"""One picture that holds all thumbnails of a page, each image once: the sprite."""

import base64
import io
from collections.abc import Hashable

import numpy as np
from markupsafe import Markup, escape
from PIL import Image, features

from nearkin.pages._base import Part

TILE = 64  # side of a thumbnail in pixels
COLUMNS, ROWS = 40, 250  # of a sheet; WebP allows 16,383 pixels, which is 255 rows
QUALITY = 75  # a photograph then takes about 1 kB
GREY = 128  # where a sheet has no thumbnail


class Sprite(Part):
    """Collects thumbnails and puts them into one picture, as a data URI in a stylesheet. After 10,000 of them a second
    sheet begins. It is a part of the page, once, anywhere in it.

    Example:
        sprite = Sprite()
        index = sprite.add(("81ed28", 17), image)               # (64, 64, 3) uint8
        thumb(index, "a cat")                                   # to be written into the page
    """

    def __init__(self) -> None:
        super().__init__("sprite", "")
        self.tiles: list[np.ndarray] = []  # each (TILE, TILE, 3)
        self.places: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.tiles)

    def add(self, key: Hashable, image: np.ndarray) -> int:
        """The number of a thumbnail (TILE, TILE, 3) uint8; an image that is here already keeps its number."""
        if key not in self.places:
            self.places[key] = len(self.tiles)
            self.tiles.append(image)
        return self.places[key]

    def sheets(self) -> list[Image.Image]:
        """The pictures, COLUMNS thumbnails wide."""
        size = COLUMNS * ROWS
        return [_sheet(self.tiles[start : start + size]) for start in range(0, len(self.tiles), size)]

    def html(self) -> Markup:
        """<style>, made when the page is written: later thumbnails are in it, too; empty without any."""
        rules = [
            f".sheet-{i}{{background-image:url({data_uri(encoded(sheet), form())})}}"
            for i, sheet in enumerate(self.sheets())
        ]
        return Markup(f"<style>{''.join(rules)}</style>") if rules else Markup("")  # base64: nothing to escape


def thumb(index: int | None, label: str, kind: str = "") -> Markup:
    """A thumbnail by its number; with None, where there is no picture, a box that says so.

    Parameters:
        index: what `Sprite.add` gave.
        label: the image in words, for those who cannot see it.
        kind: a further class for the stylesheet.
    """
    if index is None:
        return Markup(
            '<span class="thumb gone {}" role="img" aria-label="{} (no picture)" title="{}">no picture</span>'
        ).format(kind, label, label)
    sheet, x, y = place(index)
    return Markup(
        '<span class="thumb sheet-{} {}" style="--x:{};--y:{}" role="img" aria-label="{}" title="{}"></span>'
    ).format(sheet, kind, x, y, label, label)


def named(name: str) -> Markup:
    """A class name that may break after its underscores and hyphens."""
    text = escape(name)
    for mark in "_-/":
        text = text.replace(mark, Markup("{}<wbr>").format(mark))
    return text


def place(index: int) -> tuple[int, int, int]:
    """Sheet, column and row of a thumbnail."""
    sheet, within = divmod(index, COLUMNS * ROWS)
    return sheet, within % COLUMNS, within // COLUMNS


def form() -> str:
    """webp, or jpeg where Pillow was built without it."""
    return "webp" if features.check("webp") else "jpeg"


def encoded(image: Image.Image, quality: int = QUALITY) -> bytes:
    """The bytes of a picture."""
    buffer = io.BytesIO()
    image.save(buffer, form(), quality=quality)
    return buffer.getvalue()


def data_uri(content: bytes, kind: str) -> str:
    """A picture as an address that needs no file."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _sheet(tiles: list[np.ndarray]) -> Image.Image:
    rows = -(-len(tiles) // COLUMNS)
    pixels = np.full((rows * TILE, COLUMNS * TILE, 3), GREY, np.uint8)
    for i, tile in enumerate(tiles):
        y, x = i // COLUMNS * TILE, i % COLUMNS * TILE
        pixels[y : y + TILE, x : x + TILE] = tile
    return Image.fromarray(pixels)
