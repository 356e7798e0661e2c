"""`PixelSource`: batches of uint8 images, from memory or from the decoded cache.

    source = PixelSource(table, size=32, crop=32, augment=table.augment)
    source.train(indices, generator)    # (B, 3, crop, crop): random resized crop and flip, as `augment` says
    source.test(indices)                # (B, 3, size, size): centre crop

Randomness comes from the generator alone, in one draw a batch: threads change nothing.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.data.table import Augment, Table
from nearkin.data.transforms import centre, cut, draw_crops
from nearkin.errors import NearkinError


class Images(Protocol):
    """N images of their own shapes: the decoded cache, or an array."""

    shapes: np.ndarray                                              # (N, 2) height, width

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> np.ndarray: ...            # (H, W, 3) uint8


class InMemory:
    def __init__(self, array: np.ndarray):
        self.array = array                                          # (N, H, W, 3) uint8
        self.shapes = np.broadcast_to(np.array(array.shape[1:3]), (len(array), 2))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.array[index]


class PixelSource:
    def __init__(self, images: Table | Images, *, size: int, crop: int, augment: Augment, threads: int | None = None):
        for name, side in (("size", size), ("crop", crop)):
            if side < 1:
                raise NearkinError(f"{name}={side}: an image has at least 1 pixel a side")
        if isinstance(images, Table):
            if images.images is None:
                raise NearkinError("a table of files is decoded first: PixelSource(decoded(table, resize=...), ...)")
            images = InMemory(images.images)
        self.images: Images = images
        self.size, self.crop, self.augment = size, crop, augment
        self.threads = threads or torch.get_num_threads()
        self._whole: dict[int, Tensor] = {}                         # all images as they are, where no work is left

    def __len__(self) -> int:
        return len(self.images)

    def train(self, indices: np.ndarray, generator: Generator, size: int | None = None) -> Tensor:
        side = size or self.crop
        indices = np.asarray(indices)
        if self.augment.crop_scale is None and not self.augment.flip:
            return self._centred(indices, side)
        heights, widths = self.images.shapes[indices].T
        boxes, flips = draw_crops(heights, widths, self.augment, generator)
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
        if isinstance(self.images, InMemory) and self.images.array.shape[1:3] == (side, side):
            if side not in self._whole:                             # once: channels first, then plain gathers
                self._whole[side] = torch.from_numpy(self.images.array).permute(0, 3, 1, 2).contiguous()
            return self._whole[side].index_select(0, torch.from_numpy(indices))
        return self._gather(lambda b: centre(self.images[int(indices[b])], side), len(indices), side)

    def _gather(self, image: Callable[[int], np.ndarray], count: int, side: int) -> Tensor:
        batch = np.empty((count, side, side, 3), np.uint8)

        def fill(b: int) -> None:
            batch[b] = image(b)

        if self.threads > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(fill, range(count)))
        else:
            for b in range(count):
                fill(b)
        return torch.from_numpy(batch).permute(0, 3, 1, 2)          # (B, 3, side, side), channels last in memory
