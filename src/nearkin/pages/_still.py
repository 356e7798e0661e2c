"""A map of thumbnails as one picture: borders have the colours of classes, and three regions are magnified below."""

import colorsys
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy.spatial import cKDTree

from nearkin.present import Table

WIDTH, HEIGHT, SIDE, BORDER = 1400, 952, 34, 3  # of the map and of a thumbnail on it, in pixels
LARGE, ACROSS, GAP = 66, 6, 40  # a magnified thumbnail, how many of them side by side, between regions
REGION = 204  # side of a region on the map
REGIONS = "ABC"
PAPER, INK = "#ffffff", "#1b1b1b"
STYLES = (files("nearkin.pages") / "assets" / "pictures.css").read_text(encoding="utf-8")
COLOURS = re.findall(
    r"--k\d+: (#\w+)", STYLES.partition("@media (prefers-color-scheme: dark)")[0]
)  # of coloured classes


@dataclass
class Drawn:
    """A still map: the picture, its words, and which points it shows, on the map and in its regions."""

    image: Image.Image
    alt: str
    shown: list[tuple[str, int]]  # ("map", "A", "B" or "C", number of the point)

    def table(self, name: str, rows: np.ndarray, labels: np.ndarray) -> Table:
        """Which images are where."""
        content = [[where, int(rows[i]), str(labels[i])] for where, i in self.shown]
        return Table(name, ["where", "row", "class"], content)


def still_map(
    positions: np.ndarray, labels: np.ndarray, images: Sequence[np.ndarray], coloured: Sequence[str]
) -> Drawn:
    """Draw it.

    Parameters:
        positions: (M, 2), from 0 upwards.
        labels: (M,) class names.
        images: M thumbnails.
        coloured: the classes that have a colour of their own; the others' are spread over all hues.
    """
    colour = class_colours(labels, coloured)
    room = np.array([WIDTH, HEIGHT]) - SIDE
    centres = SIDE / 2 + positions / np.maximum(positions.max(0), 1e-9) * room  # (M, 2) in pixels, upwards
    centres[:, 1] = HEIGHT - centres[:, 1]  # downwards
    regions = mixed_regions(centres, labels)
    panel = ACROSS * LARGE
    image = Image.new("RGB", (WIDTH, HEIGHT + (panel + 60 if regions else 0)), PAPER)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(22)
    shown: list[tuple[str, int]] = []
    for (column, row), i in in_cells(centres).items():
        _paste(image, images[i], (column * SIDE, row * SIDE), SIDE, colour[labels[i]])
        shown.append(("map", i))
    left, top = (WIDTH - len(regions) * panel - (len(regions) - 1) * GAP) // 2, HEIGHT + 44
    for letter, (x, y) in zip(REGIONS, regions, strict=False):
        draw.rectangle([x - 2, y - 2, x + REGION + 2, y + REGION + 2], outline=PAPER, width=8)
        draw.rectangle([x, y, x + REGION, y + REGION], outline=INK, width=4)
        _letter(draw, (x + 6, y + 2), letter, font)
        draw.text((left, HEIGHT + 12), f"{letter}, magnified", fill=INK, font=font)
        draw.rectangle([left - 3, top - 3, left + panel + 2, top + panel + 2], outline=INK, width=3)
        inside = np.flatnonzero(_inside(centres, (x, y)))
        for (column, row), i in laid_out((centres[inside] - (x, y)) / REGION, inside).items():
            _paste(image, images[i], (left + column * LARGE, top + row * LARGE), LARGE, colour[labels[i]])
            shown.append((letter, i))
        left += panel + GAP
    on_map = sum(where == "map" for where, _ in shown)
    alt = f"Map of {on_map:,} thumbnails, each in the cell where it lies, with a border in the colour of its class"
    if regions:
        several = f"{len(regions)} regions" if len(regions) > 1 else "region"
        alt += f"; magnified below: the {several} in which the most images lie beside one of another class"
    return Drawn(image, f"{alt}.", shown)


def class_colours(labels: np.ndarray, coloured: Sequence[str]) -> dict[str, str]:
    """Class -> colour: those of the points for the coloured classes, for all others hues that lie far apart."""
    colour = dict(zip(coloured, COLOURS, strict=False))
    for i, name in enumerate(n for n in np.unique(labels).tolist() if n not in colour):
        hue, light = (i * 0.618034) % 1, (0.42, 0.6, 0.3)[i % 3]
        red, green, blue = colorsys.hls_to_rgb(hue, light, 0.6)
        colour[name] = f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"
    return colour


def in_cells(centres: np.ndarray) -> dict[tuple[int, int], int]:
    """Cells of a grid of thumbnails -> the point that is shown there: the one nearest to its middle."""
    cell = (centres // SIDE).astype(int)
    off = np.abs(centres - (cell + 0.5) * SIDE).max(1)
    taken: dict[tuple[int, int], int] = {}
    for i in np.lexsort((np.arange(len(centres)), off)):
        taken.setdefault((int(cell[i, 0]), int(cell[i, 1])), int(i))
    return taken


def mixed_regions(centres: np.ndarray, labels: np.ndarray, most: int = len(REGIONS)) -> list[tuple[int, int]]:
    """Upper left corners of squares that do not overlap, in which the most points lie beside one of another class."""
    if len(centres) < 4 * ACROSS:
        return []
    beside = cKDTree(centres).query(centres, k=2)[1][:, 1]
    mixed = centres[labels != labels[beside]]
    step = REGION // 4
    corners = [(x, y) for y in range(0, HEIGHT - REGION, step) for x in range(0, WIDTH - REGION, step)]
    counts = [int(_inside(mixed, corner).sum()) for corner in corners]
    regions: list[tuple[int, int]] = []
    for c in np.argsort(-np.array(counts), kind="stable"):
        x, y = corners[c]
        if len(regions) < most and counts[c] and all(abs(x - a) >= REGION or abs(y - b) >= REGION for a, b in regions):
            regions.append((x, y))
    return regions


def _inside(centres: np.ndarray, corner: tuple[int, int]) -> np.ndarray:
    return np.all((centres >= corner) & (centres < np.array(corner) + REGION), axis=1)


def laid_out(positions: np.ndarray, numbers: np.ndarray) -> dict[tuple[int, int], int]:
    """Cells of a grid of ACROSS by ACROSS -> the point that is shown there: each in the free cell nearest to it."""
    free = {(column, row) for column in range(ACROSS) for row in range(ACROSS)}
    cells: dict[tuple[int, int], int] = {}
    middle = np.abs(positions - 0.5).max(1)
    for i in np.argsort(middle, kind="stable"):
        if not free:
            break
        x, y = positions[i] * ACROSS - 0.5  # in cells
        cell = min(free, key=lambda c: ((c[0] - x) ** 2 + (c[1] - y) ** 2, c))
        if max(abs(cell[0] - x), abs(cell[1] - y)) > 1.5:
            continue  # too far from where it lies
        free.remove(cell)
        cells[cell] = int(numbers[i])
    return cells


def _paste(image: Image.Image, pixels: np.ndarray, corner: tuple[int, int], side: int, colour: str) -> None:
    framed = Image.new("RGB", (side, side), colour)
    inner = side - 2 * BORDER
    framed.paste(Image.fromarray(pixels).resize((inner, inner), Image.Resampling.BICUBIC), (BORDER, BORDER))
    image.paste(framed, (int(corner[0]), int(corner[1])))


def _letter(draw: ImageDraw.ImageDraw, at: tuple[float, float], letter: str, font: Any) -> None:
    box = draw.textbbox(at, letter, font=font)
    draw.rectangle([box[0] - 4, box[1] - 4, box[2] + 4, box[3] + 4], fill=PAPER)
    draw.text(at, letter, fill=INK, font=font)
