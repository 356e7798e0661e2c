"""The data set `glyphs`: drawn here, from the characters and faces of `alphabet.py`."""

import colorsys
import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import PIL
from PIL import Image, features

from nearkin.cache import cache_dir
from nearkin.data.alphabet import CHARACTERS, FACES, Face, fitting, font_file, ink
from nearkin.data.table import Augment, Table
from nearkin.errors import NearkinError, choices
from nearkin.progress import track
from nearkin.registry import DATASETS
from nearkin.storage import UNREADABLE, arrays_of, atomic

INK = {"default": (0, 110), "hard": (0, 255)}
GROUND = {"default": (150, 255), "hard": (0, 255)}
CONTRAST = 40
DRAWING = 1  # raise it when the same settings begin to give other pixels


@DATASETS.register("glyphs", version=DRAWING)
class Glyphs:
    """The embedded data set: images of up to 200 characters in 16 faces, drawn by nearkin itself. No download.

    A class is a character; the first half of the classes trains, the last half tests. An image shows its character in
    a random face and font size, rotated and sheared, in a random colour (the ink) on another (the ground), with light
    that rises linearly in a random direction (the ramp) and Gaussian noise. It is drawn at twice its size and reduced.
    All values are uniform between these bounds:

        level      ink        ground     font size   rotation   shear   ramp   noise σ
        default    0-110      150-255    38-54       ±15°       ±0.2    ±30    0-15       dark on light
        hard       0-255      0-255      the same                                         any colour on any other

    Colours are drawn channel by channel. At level hard, ink and ground differ by at least 40 in the mean over channels,
    because less contrast cannot be read. Font sizes are for an image of 64 pixels and scale with the image.

    What was drawn for each image is kept as columns of the table: face, family, weight, slant, size (the font size that
    was used, which is smaller than the one drawn where a wide character would leave the image), rotation, shear,
    foreground_hue, background_hue, ramp, noise. The direction of the ramp is not kept, nor is more of a colour than its
    hue.

    In training, images are neither cropped nor flipped: a flipped b is a d. They are drawn once and then read from the
    cache. More classes or more images per class leave the first images as they are.

    Parameters:
        root: must be None, there are no files to read
        level: "default" or "hard", see the table
        classes: how many characters, 2 to 200
        per_class: images per class, 1 to 10,000
        size: side of an image in pixels, 8 to 512
        seed: of all that is drawn at random

    Example:
        table = nearkin.data.load_table("glyphs", level="hard", classes=50)
        table.images.shape                                      # (2000, 32, 32, 3)
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        level: Literal["default", "hard"] = "default",
        classes: int = 200,
        per_class: int = 40,
        size: int = 32,
        seed: int = 0,
    ):
        if root is not None:
            raise NearkinError(f"root={root}: dataset=glyphs is drawn by nearkin and takes no root")
        if level not in INK:
            raise NearkinError(f"glyphs: unknown level {level!r}: {choices(level, INK)}")
        for name, value, low, high in (
            ("classes", classes, 2, len(CHARACTERS)),
            ("per_class", per_class, 1, 10_000),
            ("size", size, 8, 512),
            ("seed", seed, 0, 2**32 - 1),
        ):
            if not low <= value <= high:
                raise NearkinError(f"glyphs: {name}={value} is not between {low} and {high}")
        self.level, self.classes, self.per_class, self.size, self.seed = level, classes, per_class, size, seed

    def load(self) -> Table:
        """The table of classes · per_class images in memory, class after class, from the cache or drawn into it."""
        file = cache_dir() / "glyphs" / f"{self._key()}.npz"
        try:
            arrays = arrays_of(file)
        except UNREADABLE:  # absent or damaged: draw it
            arrays = self.draw()
            with atomic(file, needs=lambda: arrays["images"].nbytes) as scratch:
                np.savez(scratch / file.name, **arrays)  # type: ignore[arg-type]
        labels = np.repeat(np.arange(self.classes), self.per_class)  # (N,)
        split = np.where(labels < self.classes // 2, "train", "test")
        return Table(
            labels=labels,
            classes=tuple(CHARACTERS[: self.classes]),
            images=arrays.pop("images"),
            columns={"split": split, **arrays},
            augment=Augment(crop_scale=None, flip=False),  # a flipped b is a d, a flipped p a q
            name="glyphs",
        )

    def draw(self) -> dict[str, np.ndarray]:
        """All images, without the cache: `images` (N, size, size, 3) uint8 and one array (N,) per factor.

        Each class has a random generator of its own and draws its images one after another, so that more classes or
        more images per class leave the others as they are.
        """
        images, factors = [], []
        for c in track(range(self.classes), "Drawing glyphs", self.classes):
            rng = np.random.default_rng((self.seed, c))
            for _ in range(self.per_class):
                image, drawn = draw(CHARACTERS[c], self.level, self.size, rng)
                images.append(image)
                factors.append(drawn)
        return {"images": np.stack(images)} | {k: np.array([f[k] for f in factors]) for k in factors[0]}

    def _key(self) -> str:
        settings = [self.level, self.classes, self.per_class, self.size, self.seed]
        fonts = [font_file(face).stat().st_size for face in FACES]
        versions = [PIL.__version__, features.version("freetype2"), np.__version__, DRAWING]
        return sha256(json.dumps([settings, fonts, versions]).encode()).hexdigest()[:16]


def draw(character: str, level: str, size: int, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """One image (size, size, 3) uint8 of a character, and the factors that were drawn for it by name."""
    face = FACES[rng.integers(len(FACES))]
    points = fitting(character, face, int(rng.integers(38, 55)), 64)
    rotation, shear = float(rng.uniform(-15, 15)), float(rng.uniform(-0.2, 0.2))
    foreground, background = _colours(level, rng)
    ramp, direction = float(rng.uniform(0, 30)), float(rng.uniform(0, 2 * math.pi))
    noise = float(rng.uniform(0, 15))

    alpha = _shape(character, face, points, rotation, shear, size)[..., None]  # (S, S, 1) in 0..1
    pixels = background + alpha * (foreground - background)  # (S, S, 3)
    axis = np.linspace(-1, 1, size)
    slope = (math.cos(direction) * axis + math.sin(direction) * axis[:, None]) / math.sqrt(2)
    pixels += ramp * slope[..., None] + noise * rng.standard_normal(pixels.shape)
    return pixels.round().clip(0, 255).astype(np.uint8), {
        "face": face.file,
        "family": face.family,
        "weight": face.weight,
        "slant": face.slant,
        "size": points,
        "rotation": rotation,
        "shear": shear,
        "foreground_hue": _hue(foreground),
        "background_hue": _hue(background),
        "ramp": ramp,
        "noise": noise,
    }


def _colours(level: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    while True:
        foreground = rng.integers(INK[level][0], INK[level][1] + 1, 3).astype(float)
        background = rng.integers(GROUND[level][0], GROUND[level][1] + 1, 3).astype(float)
        if np.abs(foreground - background).mean() >= CONTRAST:
            return foreground, background


def _shape(character: str, face: Face, points: int, rotation: float, shear: float, size: int) -> np.ndarray:
    """(size, size) in 0..1: how much of each pixel the rotated and sheared character covers. The matrix
    R(-φ) · [1 k; 0 1], about the middle, takes a pixel of the result to the pixel of the upright character it shows."""
    canvas = 2 * size
    middle = (canvas - 1) / 2
    cos, sin = math.cos(math.radians(rotation)), math.sin(math.radians(rotation))
    matrix = np.array([[cos, -sin], [sin, cos]]) @ np.array([[1, shear], [0, 1]])
    offset = middle - matrix @ (middle, middle)
    mask = ink(character, face, round(points * canvas / 64), canvas)
    coefficients = (*matrix[0], offset[0], *matrix[1], offset[1])
    mask = mask.transform(mask.size, Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)
    return np.asarray(mask.reduce(2), np.float64) / 255


def _hue(colour: np.ndarray) -> float:
    return colorsys.rgb_to_hsv(*colour / 255)[0]
