"""Sheets of images: queries with their neighbours, and samples of the test classes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from nearkin.data.samples import sample_rows
from nearkin.pages._base import Part, Section, attempt
from nearkin.pages._pictured import Cards, Pictured, Thumbnail
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import Sprite, named
from nearkin.pages._tested import Tested
from nearkin.present import Pictures as ImageSheet
from nearkin.present import Table, framed, shortened
from nearkin.units import NUMBER, SHARE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

IN_FILES = 4  # neighbours of a query in a file; the page has more
PAPER, RIGHT, WRONG = "#ffffff", "#1a7f37", "#b3232a"  # frames: none, and those of the page


def samples(tested: Tested, sprite: Sprite) -> Section:
    """Some test images of some classes, which no run chose."""
    title, nothing = "Test images", "There are no samples"
    lead = "What the test classes look like: a few of them, whatever a run made of them."
    return attempt("samples", title, lead, nothing, lambda: _samples(tested, sprite))


def _samples(tested: Tested, sprite: Sprite) -> list[Part]:
    pictures, lines = Pictures(tested, sprite), sample_rows(tested.labels)
    content = [[int(tested.rows[i]), tested.file(i), str(tested.labels[i])] for line in lines for i in line]
    table = Table("samples-images", ["row", "file", "class"], content)
    tiles = pictures.tiles(table.column("row"))
    cards: list[tuple[Markup, list[list[Thumbnail]]]] = []
    for line in lines:
        name = str(tested.labels[line[0]])
        cards.append((named(name), [[(int(tested.rows[i]), f"{name}, {tested.file(i)}", "")] for i in line]))
    classes, most = len(np.unique(tested.labels)), max(map(len, lines))
    note = f"Shown: {len(lines)} of {classes:,} classes, of each up to {most} images; both are spread evenly."
    return [*pictures.gaps(), Samples(table.name, "", table, tiles, cards, note, pictures)]


@dataclass
class Samples(Cards):
    """Images of some classes, a card for each.

    Parameters:
        pictures: where files take the images from, larger than thumbnails.
    """

    pictures: Pictures | None = None

    def drawn(self) -> "Drawing | None":
        """A row for each class."""
        assert self.table is not None
        classes: dict[str, list[int]] = {}
        for row in self.table.records():
            classes.setdefault(row["class"], []).append(row["row"])
        seen = {} if self.pictures is None else self.pictures.seen(self.table.column("row"))
        images = [[seen.get(row) for row in rows] for rows in classes.values()]
        return ImageSheet(name=self.id, images=images, rows=list(classes)).figure() if seen else None


@dataclass
class Sheet(Pictured):
    """Queries with their neighbours, each framed and marked: ✓ is right, ✗ is wrong.

    Parameters:
        pictures: where files take the images from, larger than thumbnails.
    """

    pictures: Pictures | None = None

    def html(self) -> Markup:
        """One block per query, one line per method."""
        assert self.table is not None
        blocks = self._blocks()
        if not blocks:
            return Markup("<p>There are none.</p>")
        return Markup("\n").join(self._block(methods) for methods in blocks.values())

    def drawn(self) -> "Drawing | None":
        """The queries, each with its IN_FILES nearest in a green or a red frame; a row for each method."""
        answered = [
            (name, answers[:IN_FILES]) for methods in self._blocks().values() for name, answers in methods.items()
        ]
        # of every row the class and the image of the query, then those of its neighbours
        labels = [[answers[0]["query class"], *(a["class"] for a in answers)] for _, answers in answered]
        rows = [[answers[0]["query row"], *(a["neighbour row"] for a in answers)] for _, answers in answered]
        frames = [[PAPER, *(RIGHT if a["right"] else WRONG for a in answers)] for _, answers in answered]
        seen = {} if self.pictures is None else self.pictures.seen(row for line in rows for row in line)
        if not seen:
            return None
        images = [
            [framed(seen[row], frame) if row in seen else None for row, frame in zip(line, colours, strict=True)]
            for line, colours in zip(rows, frames, strict=True)
        ]
        methods = [name for name, _ in answered]
        captions = [[shortened(name) for name in line] for line in labels]
        several = methods if len(set(methods)) > 1 else []
        return ImageSheet(name=self.id, images=images, captions=captions, rows=several).figure()

    def _blocks(self) -> dict[int, dict[str, list[dict]]]:
        """Row of a query -> method -> what it finds."""
        assert self.table is not None
        blocks: dict[int, dict[str, list[dict]]] = {}
        for row in self.table.records():
            blocks.setdefault(row["query row"], {}).setdefault(row["method"], []).append(row)
        return blocks

    def _block(self, methods: dict[str, list[dict]]) -> Markup:
        first = next(iter(methods.values()))[0]
        row, name = first["query row"], first["query class"]
        file = first["query file"] or f"image {row}"
        query = Markup(
            '<figure class="query">{}<figcaption><span class="name">{}</span><span class="quiet">query, {}</span>'
            "</figcaption></figure>"
        ).format(self.thumb(row, f"query: {name}, {file}"), named(name), named(file))
        lines = Markup("").join(self._line(method, answers) for method, answers in methods.items())
        return Markup('<div class="sheet">{}<div class="answers">{}</div></div>').format(query, lines)

    def _line(self, method: str, answers: list[dict]) -> Markup:
        value, right = answers[0]["map_at_r"], sum(answer["right"] for answer in answers)
        score = f"{right} of {len(answers)} right" + ("" if value is None else f", MAP@R {SHARE.text(value, 1)} %")
        items = Markup("").join(self._item(answer) for answer in answers)
        return Markup(
            '<div class="answer"><p><strong>{}</strong> <span class="quiet">{}</span></p>'
            '<ol class="found">{}</ol></div>'
        ).format(method, score, items)

    def _item(self, answer: dict) -> Markup:
        word, mark = ("right", "✓") if answer["right"] else ("wrong", "✗")
        name, row = answer["class"], answer["neighbour row"]
        label = f"{word}: {name}, image {row}, similarity {NUMBER.text(answer['similarity'])}"
        return Markup(
            '<li class="{}">{}<span class="mark" aria-hidden="true">{}</span>'
            '<span class="name" title="{}">{}</span></li>'
        ).format(word, self.thumb(row, label), mark, name, named(name))
