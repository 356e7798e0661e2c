"""`PixelSource`: batches of uint8 images, from memory or from the decoded cache.

    source = PixelSource(table, size=32, crop=32, augment=table.augment)
    source.train(indices, generator)    # (B, 3, crop, crop): random resized crop and flip, as `augment` says
    source.test(indices)                # (B, 3, size, size): centre crop

Randomness comes from the generator alone, in one draw a batch. No thread pool: a crop at 112 px takes a third of a
millisecond, too little to hand over.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.data.cache import Decoded
from nearkin.data.table import Augment, Table
from nearkin.data.transforms import centre, cut, draw_crops
from nearkin.errors import NearkinError


class PixelSource:
    def __init__(self, images: Table | Decoded, *, size: int, crop: int, augment: Augment):
        for name, side in (("size", size), ("crop", crop)):
            if side < 1:
                raise NearkinError(f"{name}={side}: an image has at least 1 pixel a side")
        if isinstance(images, Table):
            if images.images is None:
                raise NearkinError("a table of files is decoded first: PixelSource(decoded(table, resize=...), ...)")
            images = Decoded.of(images.images)
        self.images = images
        self.size, self.crop, self.augment = size, crop, augment
        self._whole: dict[int, np.ndarray] = {}                     # where images need no work: all, channels first

    def __len__(self) -> int:
        return len(self.images)

    def train(
        self, indices: np.ndarray, generator: Generator, size: int | None = None, part: slice = slice(None)
    ) -> Tensor:
        """`part`: the slice of the batch that is wanted; chance is drawn for all of it, so that slices together are
        the batch."""
        side = size or self.crop
        indices = np.asarray(indices)
        if self.augment.crop_scale is None and not self.augment.flip:
            return self._centred(indices[part], side)
        heights, widths = self.images.shapes[indices].T
        boxes, flips = (drawn[part] for drawn in draw_crops(heights, widths, self.augment, generator))
        indices = indices[part]
        if self.augment.crop_scale is None:
            batch = self._centred(indices, side)
        else:
            batch = self._gather(lambda b: cut(self.images[int(indices[b])], boxes[b], side), len(indices), side)
        if flips.any():
            flipped = torch.from_numpy(flips)
            batch[flipped] = batch[flipped].flip(-1)
        return batch

    def test(self, indices: np.ndarray, size: int | None = None) -> Tensor:
        return self._centred(np.asarray(indices), size or self.size)

    def _centred(self, indices: np.ndarray, side: int) -> Tensor:
        if self.images.in_memory and (self.images.shapes == side).all():
            if side not in self._whole:                             # once: channels first, then plain gathers
                whole = self.images.pixels.reshape(-1, side, side, 3)
                self._whole[side] = np.ascontiguousarray(whole.transpose(0, 3, 1, 2))
            return torch.from_numpy(self._whole[side][indices])
        return self._gather(lambda b: centre(self.images[int(indices[b])], side), len(indices), side)

    def _gather(self, image: Callable[[int], np.ndarray], count: int, side: int) -> Tensor:
        batch = np.empty((count, 3, side, side), np.uint8)

        for b in range(count):
            batch[b] = image(b).transpose(2, 0, 1)
        return torch.from_numpy(batch)                              # (B, 3, side, side)
