"""Parts with pictures: thumbnails from the sprite, cards of them, whole pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from nearkin.pages._base import Part
from nearkin.pages._sprite import data_uri, thumb
from nearkin.present import Table, pixel_by_pixel
from nearkin.present.html import sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Thumbnail = tuple[int, str, str]  # a row, what it shows, and a class for the stylesheet


@dataclass
class Pictured(Part):
    """A part that shows thumbnails.

    Parameters:
        tiles: row -> number of its thumbnail in the sprite, or None.
    """

    tiles: dict[int, int | None] = field(default_factory=dict)

    def thumb(self, row: int, label: str, kind: str = "") -> Markup:
        """The thumbnail of a row; see `thumb`."""
        return thumb(self.tiles.get(row), label, kind)


@dataclass
class Cards(Pictured):
    """Cards of words and thumbnails.

    Parameters:
        cards: what each says, and its groups of thumbnails: rows, what they show, and a class for the stylesheet.
        note: a sentence below them.
    """

    cards: list[tuple[Markup, list[list[Thumbnail]]]] = field(default_factory=list)
    note: str = ""

    def html(self) -> Markup:
        """A list of cards."""
        cards = Markup("").join(map(self._card, *zip(*self.cards, strict=True)))
        return Markup('<ul class="cards">{}</ul><p class="note">{}</p>').format(cards, self.note)

    def _card(self, words: Markup, groups: list[list[Thumbnail]]) -> Markup:
        pairs = [Markup("").join(self.thumb(*picture) for picture in group) for group in groups]
        shown = Markup("").join(Markup('<span class="pair">{}</span>').format(pair) for pair in pairs)
        return Markup('<li class="card"><p>{}</p><div class="pairs">{}</div></li>').format(words, shown)


class Picture(Part):
    """A picture inside the page.

    Parameters:
        id: unique in the page.
        title: its heading.
        image: the bytes of a file.
        form: png, jpeg or webp.
        alt: the picture in words, which stand below it, too.
        looks: a class for the stylesheet.
        notes: sentences below it.
        table: its numbers.
        pixels: the picture (H, W, 3) for files; None: they do not have it.
    """

    def __init__(
        self,
        id: str,
        title: str,
        image: bytes,
        form: str,
        alt: str,
        *,
        looks: str = "stored",
        notes: Sequence[str] = (),
        table: Table | None = None,
        pixels: np.ndarray | None = None,
    ):
        super().__init__(id, title, table)
        self.pixels = pixels
        self.address, self.alt, self.looks, self.notes = data_uri(image, form), alt, looks, notes

    def html(self) -> Markup:
        """<img> with its words."""
        return Markup('<figure class="{}"><img src="{}" alt="{}"><figcaption>{}</figcaption></figure>{}').format(
            self.looks, self.address, self.alt or self.title, self.alt, sentences(self.notes)
        )

    def drawn(self) -> "Drawing | None":
        """The picture as it is."""
        return None if self.pixels is None else pixel_by_pixel(self.pixels)
