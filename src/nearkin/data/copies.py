"""Copies: images with equal content, and images that were saved again, in another quality, format or size.

Every image is opened once and leaves a mark: its luminance in 16 x 16 fields and its colours in 4 x 4. Two images are
one that was saved again when

    luminance    differs by at most 2.5 of 255 on average, by a tenth of its own spread, and by 16 in any field
    colours      differ by at most 12 in any field
    shapes       have ratios of width to height that differ by at most 5 %

The bounds were chosen on 5,421 photographs of groceries (128 px): of every 13th, JPEG of quality 30 and WebP of 60
differed by at most 1.1 on average, half the size by 2.9, so that a few of these are missed; two different photographs
differed by 3.2 or more. Images without any contrast must have equal marks.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from PIL import Image

from nearkin.data.hashing import content_hashes
from nearkin.data.images import UnreadableImage, read_image
from nearkin.data.table import Table
from nearkin.progress import parallel

FINE, COARSE = 16, 4  # fields per side, of luminance and of colours
AVERAGE, SHARE, MOST, COLOUR, RATIO = 2.5, 0.1, 16, 12, 0.05
CHUNK = 4096  # images whose neighbours are looked for at a time

Mark = tuple[np.ndarray, tuple[int, int]]  # (288,) uint8, height and width


@dataclass(frozen=True)
class Opened:
    """What opening the N images of a table has shown.

    Fields:
        marks: (N, 288) uint8, the luminance in 256 fields and two colours in 16; None for a table of arrays
        sides: (N, 2) height and width; 0 of an image that cannot be read
        reasons: row -> why the image cannot be read
    """

    marks: np.ndarray | None
    sides: np.ndarray
    reasons: dict[int, str]


def opened(table: Table) -> Opened:
    """Open every image of a table."""
    sides = np.zeros((len(table), 2), np.int64)
    if table.paths is None:
        return Opened(None, sides, {})
    marks = np.zeros((len(table), FINE**2 + 2 * COARSE**2), np.uint8)
    reasons = {}

    def look(path: os.PathLike[str]) -> Mark | str:
        try:
            return marked(read_image(os.fspath(path)))
        except UnreadableImage as error:
            return error.reason

    for row, seen in enumerate(parallel(look, table.paths, "Opening images")):
        if isinstance(seen, str):
            reasons[row] = seen
        else:
            marks[row], sides[row] = seen
    return Opened(marks, sides, reasons)


def marked(pixels: np.ndarray) -> Mark:
    """The mark of an image (H, W, 3), and its height and width."""
    image = Image.fromarray(pixels).convert("YCbCr")
    fine, coarse = (np.asarray(image.resize((side, side), Image.Resampling.BOX)) for side in (FINE, COARSE))
    return np.concatenate([fine[..., 0].ravel(), coarse[..., 1:].ravel()]), (pixels.shape[0], pixels.shape[1])


def equal(table: Table) -> list[list[int]]:
    """The rows of images with equal content: groups of two or more, in the order of the table."""
    if table.images is not None:
        hashes = [blake2b(np.ascontiguousarray(image).data, digest_size=16).hexdigest() for image in table.images]
    else:
        hashes = content_hashes(table)
    rows: dict[str, list[int]] = defaultdict(list)
    for i, content in enumerate(hashes):
        if content != "missing":
            rows[content].append(i)
    return [group for group in rows.values() if len(group) > 1]


def copies(table: Table, seen: Opened) -> list[list[int]]:
    """The rows of images that are equal or saved again: groups of two or more, in the order of the table. Rows of one
    class that name one file are no copies of each other."""
    links = [(group[0], row) for group in equal(table) for row in group[1:]]
    links += saved_again(seen)
    above = np.arange(len(table))  # row -> an earlier row of its group, or itself

    def first(row: int) -> int:
        while above[row] != row:
            above[row] = above[above[row]]
            row = above[row]
        return int(row)

    for one, other in links:
        low, high = sorted((first(one), first(other)))
        above[high] = low
    groups = defaultdict(list)
    for row in sorted({row for link in links for row in link}):
        groups[first(row)].append(row)
    return [
        group for group in groups.values() if len(set(files(table, group))) > 1 or len(set(table.labels[group])) > 1
    ]


def files(table: Table, rows: list[int]) -> list[str]:
    """The whole paths of some rows; of arrays their numbers."""
    return [str(row) if table.paths is None else os.path.abspath(table.paths[row]) for row in rows]


def saved_again(seen: Opened) -> Iterator[tuple[int, int]]:
    """Pairs of rows whose marks say that they are one image."""
    from scipy.spatial import cKDTree

    if seen.marks is None:
        return
    rows = np.flatnonzero(seen.sides[:, 0])
    luminance = seen.marks[rows, : FINE**2]
    flat = luminance.std(1) * SHARE < 0.5  # a tenth of that is less than rounding
    yield from _same_marks(seen, rows[flat])
    rows, luminance = rows[~flat], luminance[~flat]
    if not len(rows):
        return
    fields = luminance.reshape(-1, COARSE, FINE // COARSE, COARSE, FINE // COARSE).mean((2, 4), dtype=np.float32)
    fields = fields.reshape(len(rows), -1)  # (N, 16)
    tree = cKDTree(fields)
    for start in range(0, len(rows), CHUNK):
        near = tree.query_ball_point(fields[start : start + CHUNK], 4 * AVERAGE, p=np.inf, return_sorted=False)
        for here, others in enumerate(near, start):
            later = np.array([other for other in others if other > here], np.int64)
            for other in later[_alike(seen, rows[here], rows[later])]:
                yield int(rows[here]), int(rows[other])


def _same_marks(seen: Opened, rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pairs among images without contrast, whose marks must be equal."""
    assert seen.marks is not None
    before: dict[bytes, list[int]] = defaultdict(list)
    for row in rows.tolist():
        same = before[seen.marks[row].tobytes()]
        for other in same:
            if _alike(seen, other, np.array([row]))[0]:
                yield other, row
                break
        else:
            same.append(row)


def _alike(seen: Opened, row: int, others: np.ndarray) -> np.ndarray:
    """(M,) bool: are these M images the image of `row`, saved again?"""
    assert seen.marks is not None
    apart = np.abs(seen.marks[others].astype(np.int16) - seen.marks[row])  # (M, 288)
    luminance, colours = apart[:, : FINE**2], apart[:, FINE**2 :]
    mean, spread = luminance.mean(1), seen.marks[row, : FINE**2].std()
    sides = seen.sides.astype(float)
    ratio = np.log((sides[others, 0] * sides[row, 1]) / (sides[others, 1] * sides[row, 0]))
    close = (mean <= min(AVERAGE, SHARE * spread)) & (luminance.max(1) <= MOST) & (colours.max(1) <= COLOUR)
    return close & (np.abs(ratio) <= RATIO)
