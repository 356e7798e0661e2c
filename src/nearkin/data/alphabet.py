"""The characters of `glyphs`, and the 16 faces that draw them.

A face is one font file: a family in one weight and one slant. The characters are letters, digits and symbols (Unicode
categories L, N, S) that all 16 faces can draw. Two kinds are left out: characters with a Unicode decomposition
(accented letters, ligatures of others), and near-identical twins. Two characters are twins when the cosine between
their images reaches 0.9 in any of three faces; of Latin A, Greek Α and Cyrillic А, only the first stays. The rest is
shuffled with a fixed seed: in the order of code points, Latin letters would train and symbols would test. The first 200
are `CHARACTERS`.

`CHARACTERS` is stored here and not chosen anew each time, so that a newer Unicode table or font cannot change what a
class means. `choose()` is how it was made.
"""

import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont


class Face(NamedTuple):
    """One font file that matplotlib brings along, and what it looks like."""

    file: str  # its name without .ttf
    family: str
    weight: str  # regular or bold
    slant: str  # upright or slanted


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
    """The face's .ttf file in the installed matplotlib."""
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face.file}.ttf"


@cache
def font(face: Face, size: int) -> ImageFont.FreeTypeFont:
    """The face at a size in pixels, loaded once. The basic layout, so that an installed Raqm changes nothing."""
    return ImageFont.truetype(str(font_file(face)), size, layout_engine=ImageFont.Layout.BASIC)


def fitting(character: str, face: Face, size: int, canvas: int) -> int:
    """The font size to draw a character with: `size`, or less where its box would leave less than 3/64 of the canvas
    free on each side. All in pixels."""
    left, top, right, bottom = font(face, size).getbbox(character)
    return min(size, int(size * canvas * 58 / 64 / max(right - left, bottom - top)))


def ink(character: str, face: Face, size: int, canvas: int) -> Image.Image:
    """The character in white on black (mode L), its box in the middle of a square canvas of side `canvas`."""
    image = Image.new("L", (canvas, canvas))
    left, top, right, bottom = font(face, size).getbbox(character)
    corner = round((canvas - left - right) / 2), round((canvas - top - bottom) / 2)
    ImageDraw.Draw(image).text(corner, character, font=font(face, size), fill=255)
    return image


def choose(count: int = 200, seed: int = 0) -> str:
    """The choice of characters that heads this module, made anew from the installed fonts."""
    from matplotlib.ft2font import FT2Font

    shared = set.intersection(*[set(FT2Font(str(font_file(face))).get_charmap()) for face in FACES])
    candidates = [
        c for c in map(chr, sorted(shared)) if unicodedata.category(c)[0] in "LNS" and not unicodedata.decomposition(c)
    ]
    accepted: list[int] = []
    similarity = twin_cosine(candidates)
    for i in range(len(candidates)):
        if (similarity[i, accepted] < TWIN_COSINE).all():
            accepted.append(i)
    order = np.random.default_rng(seed).permutation(len(accepted))[:count]
    return "".join(candidates[accepted[i]] for i in order)


def twin_cosine(characters: str | list[str]) -> np.ndarray:
    """(C, C): the cosine between the images of each two of C characters, the largest over `TWIN_FACES`."""
    largest = np.full((len(characters), len(characters)), -1.0)
    for face in TWIN_FACES:
        x = np.stack([np.asarray(ink(c, face, 46, 64), np.float64).ravel() for c in characters])  # (C, 64²)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        largest = np.maximum(largest, x @ x.T)
    return largest  # (C, C)
