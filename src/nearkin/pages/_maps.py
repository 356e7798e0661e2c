"""The map of a run's test images, as points and as pictures."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from markupsafe import Markup

from nearkin.pages._base import Part, Section, Words, attempt
from nearkin.pages._layout import CALLED, Method, embedding_map, stratified
from nearkin.pages._pictured import Picture
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import COLUMNS, ROWS, Sprite, encoded, form
from nearkin.pages._still import still_map
from nearkin.pages._tested import Tested
from nearkin.present import Table

PICTURES = 2000  # images of a map with a thumbnail: about 2.5 MB in the page
COLOURED = 12  # classes with a colour of their own
WIDTH, HEIGHT, MARGIN = 1000, 660, 12  # of the drawing
HEADER = ["row", "file", "class", "x", "y"]
MEANING = {
    "tsne": "Distances between far groups and the sizes of groups mean nothing in it.",
    "pca": "It shows two directions of many: what lies together here may lie apart in others.",
}

CIRCLE = Markup('<circle data-i="{}" cx="{:.1f}" cy="{:.1f}" r="4" class="k{}"/>')
DOT = Markup('<svg viewBox="0 0 10 10" aria-hidden="true"><circle cx="5" cy="5" r="5" class="k{}"/></svg>')
FIGURE = Markup(
    '<figure class="map"><div class="map-tools"></div><div class="map-field">'
    '<svg class="points" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></div>'
    '<figcaption><ul class="legend">{}</ul>'
    '<p class="note map-help">Coloured are the classes with the most images.</p></figcaption></figure>'
)


def section(tested: Tested, sprite: Sprite, method: Method = "tsne", pictures: int = PICTURES) -> Section:
    """The map of a run by tsne or pca; at most so many `pictures` go into the sprite."""
    lead = f"Every point is a test image as {tested.name} places it: images that lie together are alike to it."
    title, nothing = "Map of the embeddings", "There is no map"
    return attempt("map", title, lead, nothing, lambda: _parts(tested, sprite, method, pictures))


def _parts(tested: Tested, sprite: Sprite, method: Method, most: int) -> list[Part]:
    places, positions = embedding_map(tested, method)
    labels, rows = tested.labels[places], tested.rows[places].tolist()
    pictured = np.sort(stratified(labels, most))
    pictures = Pictures(tested, sprite)
    tiles = pictures.tiles(rows[i] for i in pictured)
    words = (
        f"{CALLED[method]} of {len(places):,} of {len(tested.labels):,} test images, as many of each class as its "
        f"share is. {MEANING[method]} The axes have no unit and are stretched to fill the drawing."
    )
    if len(pictured) < len(places) and pictures.gap is None:
        words += f" {len(pictured):,} of the images have a picture."
    files, coloured = map(tested.file, places), frequent(labels)
    points = [[*point, *at] for *point, at in zip(rows, files, labels.tolist(), positions.tolist(), strict=True)]
    drawing = Map("map-points", "", Table("map-points", HEADER, points), coloured, [tiles.get(row) for row in rows])
    parts: list[Part] = [Words(words), *pictures.gaps(), drawing]
    shown = {int(i): sprite.tiles[tile] for i in pictured if (tile := tiles[rows[i]]) is not None}
    if shown:
        pictured_points = list(shown)
        still = still_map(positions[pictured_points], labels[pictured_points], list(shown.values()), coloured)
        table = still.table("map-still", tested.rows[places][pictured_points], labels[pictured_points])
        image, title = encoded(still.image, quality=80), "The same map in pictures"
        pixels = np.asarray(still.image)
        parts.append(Picture("map-still", title, image, form(), still.alt, looks="still", table=table, pixels=pixels))
    return parts


def frequent(labels: np.ndarray, most: int = COLOURED) -> list[str]:
    """The classes with the most images; of equal ones in the order of their names."""
    names, counts = np.unique(labels, return_counts=True)
    return [str(names[i]) for i in np.lexsort((names, -counts))[:most]]


@dataclass
class Map(Part):
    """Points in a drawing; its script shows the picture and the class of the one that pointer or arrow keys are at.

    Parameters:
        coloured: the classes with a colour of their own.
        tiles: number of every point's thumbnail in the sprite, or None.
    """

    kind: ClassVar[str] = "map"
    coloured: list[str] = field(default_factory=list)
    tiles: list[int | None] = field(default_factory=list)

    def html(self) -> Markup:
        """The drawing and its legend; both are there without the script."""
        assert self.table is not None
        x, y = np.array(self.table.column("x")), np.array(self.table.column("y"))
        left = MARGIN + x / (x.max() or 1) * (WIDTH - 2 * MARGIN)
        top = HEIGHT - MARGIN - y / (y.max() or 1) * (HEIGHT - 2 * MARGIN)
        colour = {name: i for i, name in enumerate(self.coloured)}
        kinds = [colour.get(name) for name in self.table.column("class")]
        order = sorted(range(len(kinds)), key=lambda i: kinds[i] is not None)  # coloured ones on top
        points = Markup("").join(CIRCLE.format(i, left[i], top[i], "" if kinds[i] is None else kinds[i]) for i in order)
        classes = len(set(self.table.column("class")))
        legend = [Markup("<li>{} {}</li>").format(DOT.format(i), name) for i, name in enumerate(self.coloured)]
        if classes > len(self.coloured):
            legend.append(Markup("<li>{} {:,} other classes</li>").format(DOT.format(""), classes - len(self.coloured)))
        alt = f"Map of {len(x):,} test images of {classes:,} classes; the download has the place of every one"
        return FIGURE.format(WIDTH, HEIGHT, alt, points, Markup("").join(legend))

    def data(self) -> dict[str, Any]:
        """Where the thumbnails lie."""
        return {"tiles": self.tiles, "columns": COLUMNS, "rows": ROWS, "coloured": self.coloured}
