"""The characters of `glyphs`, and the 16 faces that draw them.

Which characters: letters, digits and symbols (Unicode categories L, N, S) that all 16 faces have, without a
Unicode decomposition (no accents, no ligature of others), and without near-identical twins: the cosine of the ink
of two characters is below 0.9 in each of three faces. Of A, Α and А the first stays. They are shuffled with a fixed
seed, because code points would put Latin in training and symbols in test; the first 200 are `CHARACTERS`.

The choice is stored, so that a newer Unicode table or font cannot change what a class means; `choose()` makes it.
"""

import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont


class Face(NamedTuple):
    file: str
    family: str
    weight: str
    slant: str


FACES = (
    Face("DejaVuSans", "DejaVu Sans", "regular", "upright"),
    Face("DejaVuSans-Bold", "DejaVu Sans", "bold", "upright"),
    Face("DejaVuSans-Oblique", "DejaVu Sans", "regular", "slanted"),
    Face("DejaVuSans-BoldOblique", "DejaVu Sans", "bold", "slanted"),
    Face("DejaVuSansMono", "DejaVu Sans Mono", "regular", "upright"),
    Face("DejaVuSansMono-Bold", "DejaVu Sans Mono", "bold", "upright"),
    Face("DejaVuSansMono-Oblique", "DejaVu Sans Mono", "regular", "slanted"),
    Face("DejaVuSansMono-BoldOblique", "DejaVu Sans Mono", "bold", "slanted"),
    Face("DejaVuSerif", "DejaVu Serif", "regular", "upright"),
    Face("DejaVuSerif-Bold", "DejaVu Serif", "bold", "upright"),
    Face("DejaVuSerif-Italic", "DejaVu Serif", "regular", "slanted"),
    Face("DejaVuSerif-BoldItalic", "DejaVu Serif", "bold", "slanted"),
    Face("STIXGeneral", "STIX General", "regular", "upright"),
    Face("STIXGeneralBol", "STIX General", "bold", "upright"),
    Face("STIXGeneralItalic", "STIX General", "regular", "slanted"),
    Face("STIXGeneralBolIta", "STIX General", "bold", "slanted"),
)
TWIN_FACES = (FACES[0], FACES[8], FACES[12])
TWIN_COSINE = 0.9

CHARACTERS = (
    "τ`Wʌ╝Rɔʔ3ϚŋɣʀʚʝɻЊæZɿœʕɐcʨ╖ʍʃwϟfЖɷβ═ˆ¬╓ɯɮßʈCς├T−ʁ╦ǃ"
    "ŒɥЂ╕D¤a£8ʅϝxł$ʗ┬ЪɬLД6ɩ~ə©ɚт╤Кy╚ШbЩ4nƺщu╙гξψɞюм=ƒϠɛ"
    "ǂΦɢʧd€╪Δʥ¥╜ƕшњчXOɜ␣μʑʎђҐƛЮkΩγeŊ╡┤tʂɸ┌ʏƭÞζiɴχVɠϞ>πɶ"
    "Aĸ×ɹЧЛ╒mαƪћ╬ЯS7þѢЫδУɭʊBǁЉˁЋф°ɒɖQ┴ɫ╧ʜΞ+|0║<ʣ└ɕ9θgʒʦ"
)


def font_file(face: Face) -> Path:
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face.file}.ttf"


@cache
def font(face: Face, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(font_file(face)), size, layout_engine=ImageFont.Layout.BASIC)


def fitting(character: str, face: Face, size: int, canvas: int) -> int:
    """`size`, or less where the character's box would leave no rim of 3/64 on the canvas."""
    left, top, right, bottom = font(face, size).getbbox(character)
    return min(size, int(size * canvas * 58 / 64 / max(right - left, bottom - top)))


def ink(character: str, face: Face, size: int, canvas: int) -> Image.Image:
    """The character in white on black, its box in the middle of a square canvas."""
    image = Image.new("L", (canvas, canvas))
    left, top, right, bottom = font(face, size).getbbox(character)
    corner = round((canvas - left - right) / 2), round((canvas - top - bottom) / 2)
    ImageDraw.Draw(image).text(corner, character, font=font(face, size), fill=255)
    return image


def choose(count: int = 200, seed: int = 0) -> str:
    """The choice above, made anew from the installed fonts."""
    from matplotlib.ft2font import FT2Font

    shared = set.intersection(*[set(FT2Font(str(font_file(face))).get_charmap()) for face in FACES])
    candidates = [
        c for c in map(chr, sorted(shared)) if unicodedata.category(c)[0] in "LNS" and not unicodedata.decomposition(c)
    ]
    kept: list[int] = []
    similarity = twin_cosine(candidates)
    for i in range(len(candidates)):
        if (similarity[i, kept] < TWIN_COSINE).all():
            kept.append(i)
    order = np.random.default_rng(seed).permutation(len(kept))[:count]
    return "".join(candidates[kept[i]] for i in order)


def twin_cosine(characters: str | list[str]) -> np.ndarray:
    """The largest cosine of each two characters' ink over the three faces."""
    largest = np.full((len(characters), len(characters)), -1.0)
    for face in TWIN_FACES:
        x = np.stack([np.asarray(ink(c, face, 46, 64), np.float64).ravel() for c in characters])    # (C, 64²)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        largest = np.maximum(largest, x @ x.T)
    return largest                                                                                  # (C, C)
