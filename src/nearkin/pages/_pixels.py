"""Thumbnails of the test images of a stored run, as the run saw them; only those that a page shows are read.

They come from what the cache holds, else from the data: drawn ones are drawn again, files are read. Where the images
are gone, `Pictures.gap` says so in a sentence and the page has no pictures of them.
"""

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
from PIL import Image

from nearkin.config.parts import DataSpec
from nearkin.data.cache import data_hash, held_images
from nearkin.data.forms import fitted
from nearkin.data.images import read_image
from nearkin.data.transforms import centre, shorter_side
from nearkin.errors import NearkinError
from nearkin.pages._base import Part, Words
from nearkin.pages._sprite import TILE, Sprite
from nearkin.pages._tested import Tested
from nearkin.progress import parallel
from nearkin.runs.prepare import read_table

Read = Callable[[int], np.ndarray]  # row -> pixels (H, W, 3)


class Pictures:
    """The thumbnails of a run's test images, put into a sprite when they are first asked for.

    Parameters:
        tested: the run's test images.
        sprite: where they go; an image that is in it already is not read again.

    Example:
        pictures = Pictures(tested, sprite)
        tiles = pictures.tiles([4000, 4001])                    # {4000: 0, 4001: 1}, None where one cannot be read
    """

    def __init__(self, tested: Tested, sprite: Sprite):
        self.tested, self.sprite = tested, sprite
        self.lost: set[int] = set()  # rows that could not be read
        self.asked: set[int] = set()

    def tiles(self, rows: Iterable[int]) -> dict[int, int | None]:
        """Row -> number of its thumbnail in the sprite; None without a picture."""
        rows = list(dict.fromkeys(int(row) for row in rows))
        self.asked |= set(rows)
        new = [row for row in rows if self._key(row) not in self.sprite.places and row not in self.lost]
        read, _ = self._source
        if new and read is not None:
            images = parallel(lambda row: self._thumbnail(read, row), new, "Reading thumbnails")
            for row, image in zip(new, images, strict=True):
                if image is None:
                    self.lost.add(row)
                else:
                    self.sprite.add(self._key(row), image)
        return {row: self.sprite.places.get(self._key(row)) for row in rows}

    def seen(self, rows: Iterable[int]) -> dict[int, np.ndarray]:
        """Row -> the part of its image that was embedded, (side, side, 3) uint8; without those that cannot be read."""
        read, _ = self._source
        new = list(dict.fromkeys(int(row) for row in rows)) if read is not None else []
        images = parallel(lambda row: self._seen(read, row), new, "Reading images")
        return {row: np.asarray(image) for row, image in zip(new, images, strict=True) if image is not None}

    @property
    def gap(self) -> str | None:
        """What is missing, in a sentence; None when all that was asked for is here."""
        if self._source[1] is not None:
            return self._source[1]
        if self.lost:
            return f"{len(self.lost):,} of {len(self.asked):,} images that are shown here cannot be read any more."
        return None

    def gaps(self) -> list[Part]:
        """The gap as a part of a page; empty when there is none."""
        return [] if self.gap is None else [Words(self.gap, tone="warning")]

    def _key(self, row: int) -> tuple[str, int]:
        return self._head["data_hash"], row

    @cached_property
    def _head(self) -> dict:
        return self.tested.run.head()

    @cached_property
    def _source(self) -> tuple[Read | None, str | None]:
        """What reads an image, or why there is nothing to read."""
        name = self._head["spec"]["data"].get("name", "the data")
        left = "the pictures are left out; every number is as it was stored"
        if self.tested.paths is None:
            return None, f"The list of its test images is not stored: {left}."
        try:
            return self._opened(), None
        except (ValueError, OSError, TypeError) as error:  # its words may name a folder, which no page shows
            why = str(error) if isinstance(error, OtherImages) else f"the images of {name} are not here"
            return None, f"{why[:1].upper()}{why[1:]}: {left}."

    def _opened(self) -> Read:
        head = self._head
        stored = head["spec"]["data"]
        cached = held_images(head["data_hash"], resize=stored["resize"], keep=stored.get("keep"))
        if cached is not None and len(cached) > self.tested.rows.max():
            return lambda row: shorter_side(cached[row], stored["resize"])
        data = DataSpec.model_validate(stored)
        table = read_table(data)
        if table.images is not None:
            images = table.images
            if data_hash(table) != head["data_hash"]:
                raise OtherImages(f"the images of {data.name} that are here are not those that the run saw")
            return lambda row: images[row]
        resize = data.resize or TILE
        number = {table.shown(i): i for i in range(len(table))}
        shown = dict(zip(self.tested.rows.tolist(), self.tested.paths or (), strict=True))
        if not any(path in number for path in shown.values()):
            raise OtherImages(f"the images of {data.name} that are here are not those that the run saw")
        paths = table.paths or ()

        def read(row: int) -> np.ndarray:
            if shown[row] not in number:
                raise NearkinError(f"{shown[row]} is gone")
            image = fitted(read_image(paths[number[shown[row]]]), resize, data.keep or resize)
            return shorter_side(image, resize)

        return read

    def _thumbnail(self, read: Read, row: int) -> np.ndarray | None:
        """What was embedded, at the size of a thumbnail."""
        seen = self._seen(read, row)
        return None if seen is None else np.asarray(seen.resize((TILE, TILE), Image.Resampling.BICUBIC))

    def _seen(self, read: Read | None, row: int) -> Image.Image | None:
        """The middle of the image, which was embedded; None where it cannot be read."""
        try:
            assert read is not None
            pixels = read(row)
        except (ValueError, OSError):
            return None
        return Image.fromarray(np.ascontiguousarray(centre(pixels, self._head["spec"]["data"]["size"])))


class OtherImages(NearkinError):
    """There are images, but others than the run's."""
