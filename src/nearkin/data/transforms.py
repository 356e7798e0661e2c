"""Crops: where to cut (for a whole batch, from one draw of random numbers) and how to resize.

    random resized crop   area ~ U(scale)·HW, log ratio ~ U(log ratio), place uniform. Up to ten tries until one fits
                          into the image, then the largest central crop of an allowed ratio (Szegedy et al. 2015, as
                          torchvision draws it)
    resize, then crop     the shorter side at a fixed length, then a square of the wanted size at a uniform place: all
                          objects keep their scale and shape (`augment=resize_crop`)
    centre crop           the shorter side enlarged to the wanted size when it is smaller, then the middle square

A box is (left, top, width, height) in pixels. Resizing is bilinear with antialiasing (Pillow).
"""

import math

import numpy as np
import torch
from PIL import Image
from torch import Generator

from nearkin.data.table import Augment

VERSION = 1  # raise it when the same settings begin to give other crops
TRIES = 10
DRAWS = 2 * TRIES + 3  # per image: area and ratio per try, left, top, flip


def draw_crops(
    heights: np.ndarray, widths: np.ndarray, augment: Augment, generator: Generator, side: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (B, 4) and flips (B,) bool for a batch of images of these heights (B,) and widths (B,).

    All random numbers of the batch are drawn at once, equally many for every image whatever comes out, so that neither
    threads nor the other images change an image's crop. Where `augment` allows no cropping, the box is the whole image.
    `side` is that of the training images, for boxes of this very size (resize_crop); no image may be smaller then.
    """
    u = torch.rand(len(heights), DRAWS, generator=generator, dtype=torch.float64).numpy()  # (B, 23)
    flips = (u[:, -1] < 0.5) & augment.flip
    if augment.kind == "resize_crop":
        return square_boxes(heights, widths, side, u[:, -3:-1]), flips
    if augment.crop_scale is None:
        whole = np.stack([np.zeros_like(widths), np.zeros_like(heights), widths, heights], 1)
        return whole, flips
    return random_resized_boxes(heights, widths, augment.crop_scale, augment.crop_ratio, u[:, :-1]), flips


def random_resized_boxes(
    heights: np.ndarray, widths: np.ndarray, scale: tuple[float, float], ratio: tuple[float, float], u: np.ndarray
) -> np.ndarray:
    """The boxes (B, 4) that the random numbers `u` mean for images of these heights (B,) and widths (B,).

    `u` (B, 22) is uniform in [0, 1): ten areas, ten ratios, left, top. `scale` bounds the area as a share of the image,
    `ratio` width by height. The first of the ten tries that fits into the image is taken, else the largest central box.
    """
    rows = np.arange(len(heights))
    area = (heights * widths)[:, None] * (scale[0] + (scale[1] - scale[0]) * u[:, :TRIES])  # (B, 10)
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = np.exp(low + (high - low) * u[:, TRIES : 2 * TRIES])  # (B, 10)
    w = np.rint(np.sqrt(area * aspect)).astype(np.int64)
    h = np.rint(np.sqrt(area / aspect)).astype(np.int64)
    fits = (w > 0) & (w <= widths[:, None]) & (h > 0) & (h <= heights[:, None])
    first = fits.argmax(1)  # (B,)
    w, h = w[rows, first], h[rows, first]

    boxes = _placed(heights, widths, h, w, u[:, -2:])
    for i in np.flatnonzero(~fits.any(1)):
        boxes[i] = _central_box(int(heights[i]), int(widths[i]), ratio)
    return boxes


def square_boxes(heights: np.ndarray, widths: np.ndarray, side: int, u: np.ndarray) -> np.ndarray:
    """The boxes (B, 4) of side `side` that the random numbers `u` (B, 2), left and top, mean for images of these
    heights (B,) and widths (B,), none of them below `side`."""
    sides = np.full(len(heights), side)
    return _placed(heights, widths, sides, sides, u)


def _placed(heights: np.ndarray, widths: np.ndarray, h: np.ndarray, w: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Boxes (B, 4) of heights h (B,) and widths w (B,) at the places that `u` (B, 2) means."""
    # floor(u · choices) lies in 0 .. choices - 1, because u < 1
    left = np.floor(u[:, 0] * (widths - w + 1)).astype(np.int64)
    top = np.floor(u[:, 1] * (heights - h + 1)).astype(np.int64)
    return np.stack([left, top, w, h], 1)  # (B, 4)


def _central_box(height: int, width: int, ratio: tuple[float, float]) -> tuple[int, int, int, int]:
    w, h = width, height
    if width / height < ratio[0]:
        h = round(width / ratio[0])
    elif width / height > ratio[1]:
        w = round(height * ratio[1])
    return (width - w) // 2, (height - h) // 2, w, h


def cut(pixels: np.ndarray, box: np.ndarray, size: int) -> np.ndarray:
    """The part of an image (H, W, 3) inside the box (4,), resized to (size, size, 3)."""
    left, top, width, height = (int(v) for v in box)
    part = pixels[top : top + height, left : left + width]
    if width == height == size:
        return part
    return np.asarray(Image.fromarray(part).resize((size, size), Image.Resampling.BILINEAR))


def shorter_side(pixels: np.ndarray, size: int) -> np.ndarray:
    """The image (H, W, 3) resized so that its shorter side is `size`, its aspect ratio kept."""
    if min(pixels.shape[:2]) == size:
        return pixels
    height, width = scaled(np.array(pixels.shape[:2]), size).tolist()
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR, reducing_gap=3.0))


def scaled(shapes: np.ndarray, size: int | np.ndarray) -> np.ndarray:
    """Heights and widths (..., 2) of images of these `shapes` (..., 2) once their shorter side is `size`: one number,
    or (..., 1)."""
    return np.maximum(size, np.rint(shapes * (size / shapes.min(-1, keepdims=True)))).astype(np.int64)


def centre(pixels: np.ndarray, size: int) -> np.ndarray:
    """The middle square (size, size, 3) of an image (H, W, 3), which is enlarged first when it is smaller."""
    if min(pixels.shape[:2]) < size:
        pixels = shorter_side(pixels, size)
    top, left = ((side - size) // 2 for side in pixels.shape[:2])
    return pixels[top : top + size, left : left + size]
