"""`PixelSource`: batches of uint8 images, from memory or from the decoded cache."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.data.cache import Decoded, Images
from nearkin.data.table import Augment, Table
from nearkin.data.transforms import centre, cut, draw_crops, scaled, shorter_side
from nearkin.errors import NearkinError


class PixelSource:
    """Batches of N images, augmented for training or cropped for tests, as uint8 tensors with channels first.

    All chance comes from the generator that is passed in, in one draw per batch, or none where `augment` allows neither
    crops nor flips. A source may be read by several threads at once, each with a generator of its own.

    Parameters:
        images: a table of arrays, or images; a table of files must go through `open_images` first
        size: side of the test images
        crop: side of the training images
        augment: what training may do to an image, mostly `table.augment`
        resize: shorter side of an image when squares of fixed size are cut from it: test images, and training images
            with resize_crop. None: that which it has. A random resized crop is cut from the image as it is, which may
            be larger

    A NearkinError when a side is below 1 or the table has files instead of arrays.

    Example:
        source = PixelSource(decoded(table, resize=256), size=224, crop=224, augment=table.augment)
        source.train(indices, generator), source.test(indices)  # (B, 3, crop, crop), (B, 3, size, size)
    """

    def __init__(self, images: Table | Images, *, size: int, crop: int, augment: Augment, resize: int | None = None):
        for name, side in (("size", size), ("crop", crop), ("resize", resize)):
            if side is not None and side < 1:
                raise NearkinError(f"{name}={side}: an image has at least 1 pixel per side")
        if isinstance(images, Table):
            if images.images is None:
                raise NearkinError("a table of files is decoded first: PixelSource(decoded(table, resize=...), ...)")
            images = Decoded.of(images.images)
        self.images = images
        self.size, self.crop, self.augment, self.resize = size, crop, augment, resize
        self._whole: dict[int, np.ndarray] = {}  # side -> all images, channels first, if they have that side

    def __len__(self) -> int:
        return len(self.images)

    def train(
        self, indices: np.ndarray, generator: Generator, size: int | None = None, only: slice = slice(None)
    ) -> Tensor:
        """Training images (B, 3, side, side) uint8 of the rows `indices` (B,); the side is `size`, else `crop`.

        Each is a random crop, or the centre crop where `augment` allows no cropping, flipped half of the time where it
        allows flipping. `only` is the slice of the batch that is wanted. Random numbers are drawn for the whole batch
        in any case, so that processes and threads with equal generators that take one slice each have the batch
        together.
        """
        side = size or self.crop
        indices = np.asarray(indices)
        if not self.augment.crops and not self.augment.flip:
            return self._centred(indices[only], side)
        heights, widths = self._shapes(indices, side).T
        boxes, flips = (drawn[only] for drawn in draw_crops(heights, widths, self.augment, generator, side))
        indices = indices[only]
        if not self.augment.crops:
            return self._centred(indices, side, flips)
        return self._gather(lambda b: cut(self._to_cut(int(indices[b]), side), boxes[b], side), side, flips)

    def test(self, indices: np.ndarray, size: int | None = None) -> Tensor:
        """The centre crops (B, 3, side, side) uint8 of the rows `indices` (B,); the side is `size`, else the source's
        own."""
        return self._centred(np.asarray(indices), size or self.size)

    def _shapes(self, indices: np.ndarray, side: int) -> np.ndarray:
        """Heights and widths (B, 2) of the images that crops are cut from."""
        shapes = self.images.shapes[indices]
        if self.augment.kind == "resized_crop":
            return shapes
        return scaled(shapes, np.maximum(self.resize or shapes.min(1, keepdims=True), side))

    def _to_cut(self, index: int, side: int) -> np.ndarray:
        """The image (H, W, 3) that a crop is cut from, of the shape in `_shapes`."""
        image = self.images[index]
        if self.augment.kind == "resized_crop":
            return image
        return shorter_side(image, max(self.resize or min(image.shape[:2]), side))

    def _centred(self, indices: np.ndarray, side: int, flips: np.ndarray | None = None) -> Tensor:
        flips = np.zeros(len(indices), bool) if flips is None else flips
        decoded = self.images if isinstance(self.images, Decoded) and self.resize in (None, side) else None
        if decoded is not None and decoded.in_memory and (decoded.shapes == side).all():
            if side not in self._whole:  # transposed once, then only indexed
                whole = decoded.pixels.reshape(-1, side, side, 3)
                self._whole[side] = np.ascontiguousarray(whole.transpose(0, 3, 1, 2))
            batch = self._whole[side][indices]
            if flips.any():
                batch[flips] = batch[flips][..., ::-1]
            return torch.from_numpy(batch)

        def image(b: int) -> np.ndarray:
            pixels = self.images[int(indices[b])]
            return centre(pixels if self.resize is None else shorter_side(pixels, self.resize), side)

        return self._gather(image, side, flips)

    def _gather(self, image: Callable[[int], np.ndarray], side: int, flips: np.ndarray) -> Tensor:
        batch = np.empty((len(flips), 3, side, side), np.uint8)
        for b, flip in enumerate(flips):  # flipped on the way, which costs nothing
            pixels = image(b)[:, ::-1] if flip else image(b)
            batch[b] = pixels.transpose(2, 0, 1)
        return torch.from_numpy(batch)  # (B, 3, side, side)
