"""`PixelSource`: batches of uint8 images, from memory or from the decoded cache."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.data.cache import Decoded
from nearkin.data.table import Augment, Table
from nearkin.data.transforms import centre, cut, draw_crops
from nearkin.errors import NearkinError


class PixelSource:
    """Batches of N images, augmented for training or cropped for tests, as uint8 tensors with channels first.

    All chance comes from the generator that is passed in, in one draw per batch, or none where `augment` allows neither
    crops nor flips. There is no thread pool: a crop at 112
    pixels takes a third of a millisecond, which is too little to hand over to a thread.

    Parameters:
        images: a table of arrays, or decoded images; a table of files must go through `decoded` first
        size: side of the test images
        crop: side of the training images
        augment: what training may do to an image, mostly `table.augment`

    A NearkinError when a side is below 1 or the table has files instead of arrays.

    Example:
        source = PixelSource(decoded(table, resize=256), size=224, crop=224, augment=table.augment)
        source.train(indices, generator), source.test(indices)  # (B, 3, crop, crop), (B, 3, size, size)
    """

    def __init__(self, images: Table | Decoded, *, size: int, crop: int, augment: Augment):
        for name, side in (("size", size), ("crop", crop)):
            if side < 1:
                raise NearkinError(f"{name}={side}: an image has at least 1 pixel per side")
        if isinstance(images, Table):
            if images.images is None:
                raise NearkinError("a table of files is decoded first: PixelSource(decoded(table, resize=...), ...)")
            images = Decoded.of(images.images)
        self.images = images
        self.size, self.crop, self.augment = size, crop, augment
        self._whole: dict[int, np.ndarray] = {}         # side -> all images, channels first, if they have that side

    def __len__(self) -> int:
        return len(self.images)

    def train(
        self, indices: np.ndarray, generator: Generator, size: int | None = None, only: slice = slice(None)
    ) -> Tensor:
        """Training images (B, 3, side, side) uint8 of the rows `indices` (B,); the side is `size`, else `crop`.

        Each is a random resized crop, or the centre crop where `augment` allows no cropping, flipped half of the time
        where it allows flipping. `only` is the slice of the batch that is wanted. Random numbers are drawn for the
        whole batch in any case, so that processes with equal generators that take one slice each have the batch
        together.
        """
        side = size or self.crop
        indices = np.asarray(indices)
        if self.augment.crop_scale is None and not self.augment.flip:
            return self._centred(indices[only], side)
        heights, widths = self.images.shapes[indices].T
        boxes, flips = (drawn[only] for drawn in draw_crops(heights, widths, self.augment, generator))
        indices = indices[only]
        if self.augment.crop_scale is None:
            batch = self._centred(indices, side)
        else:
            batch = self._gather(lambda b: cut(self.images[int(indices[b])], boxes[b], side), len(indices), side)
        if flips.any():
            flipped = torch.from_numpy(flips)
            batch[flipped] = batch[flipped].flip(-1)
        return batch

    def test(self, indices: np.ndarray, size: int | None = None) -> Tensor:
        """The centre crops (B, 3, side, side) uint8 of the rows `indices` (B,); the side is `size`, else the source's
        own."""
        return self._centred(np.asarray(indices), size or self.size)

    def _centred(self, indices: np.ndarray, side: int) -> Tensor:
        if self.images.in_memory and (self.images.shapes == side).all():
            if side not in self._whole:                             # transposed once, then only indexed
                whole = self.images.pixels.reshape(-1, side, side, 3)
                self._whole[side] = np.ascontiguousarray(whole.transpose(0, 3, 1, 2))
            return torch.from_numpy(self._whole[side][indices])
        return self._gather(lambda b: centre(self.images[int(indices[b])], side), len(indices), side)

    def _gather(self, image: Callable[[int], np.ndarray], count: int, side: int) -> Tensor:
        batch = np.empty((count, 3, side, side), np.uint8)

        for b in range(count):
            batch[b] = image(b).transpose(2, 0, 1)
        return torch.from_numpy(batch)                              # (B, 3, side, side)
