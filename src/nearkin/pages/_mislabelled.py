"""Images that may be mislabelled: their neighbours agree with each other, and not with the label."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from nearkin.errors import NearkinError
from nearkin.pages._base import Part, Section, Words
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import Sprite, named, thumb
from nearkin.pages._tested import NEAREST, Tested
from nearkin.present import Column, Table
from nearkin.units import NUMBER, SHARE

LEAST = 0.6  # share of the neighbours that must have one other class
LISTED, SHOWN, BESIDE = 200, 24, 4  # in the table, with pictures, neighbours of each
SHARES = [Column("share", unit=SHARE), Column("own share", "share of its label", SHARE)]
COLUMNS: list[Column | str] = ["row", "file", "class", "neighbours' class", *SHARES, Column("similarity", unit=NUMBER)]


def section(tested: Tested, sprite: Sprite, id: str = "mislabelled") -> Section:
    """The section of a page.

    Parameters:
        tested: the run that is looked at.
        sprite: where the pictures go.
        id: of the section; its parts' begin with it.
    """
    title = "Images that may be mislabelled"
    lead = "Images whose neighbours agree with each other and not with the label."
    try:
        table = suspects(tested)
        k = depth(tested)
    except NearkinError as error:
        return Section(id, title, lead, [Words(f"Nothing can be said: {error}.", tone="warning")])
    rule = (
        f"An image is listed when at least {100 * LEAST:.0f} % of its {k} nearest neighbours have one and the same "
        f"other class; sorted by that share. Listed: {len(table):,} of {len(tested.query):,} images."
    )
    caution = (
        "This is a hint and no verdict: an image that is only hard for the model looks the same here, and a weak model "
        "lists many. Look at an image before its label is changed."
    )
    if not table.rows:
        return Section(id, title, lead, [Words(f"{rule}\n\n{caution}")])
    total = len(table)
    table.rows = table.rows[:LISTED]
    beside = {row: neighbours_of(tested, row, k) for row in table.column("row")[:SHOWN]}
    pictures = Pictures(tested, sprite)
    tiles = pictures.tiles([*beside, *(near for rows in beside.values() for near, _ in rows)])
    parts: list[Part] = [Words(f"{rule}\n\n{caution}"), *pictures.gaps()]
    parts.append(Suspects(f"{id}-images", "", table, beside=beside, tiles=tiles, k=k, total=total))
    return Section(id, title, lead, parts)


def depth(tested: Tested) -> int:
    """How many neighbours vote: 10, but no more than a class of middle size has images in the gallery; at least 3."""
    _, sizes = np.unique(tested.labels[tested.gallery], return_counts=True)
    return min(int(np.clip(np.median(sizes), 3, NEAREST)), tested.sets.available)


def suspects(tested: Tested, least: float = LEAST) -> Table:
    """All images that fit the rule: by the share of the other class, then by how few agree with the label, then by the
    similarity of those neighbours."""
    k = depth(tested)
    place, similarity = tested.nearest.place[:, :k], tested.nearest.similarity[:, :k]
    votes, labels = tested.labels[place], tested.labels[tested.query]  # (Q, k), (Q,)
    rows = []
    for q in np.flatnonzero((votes == labels[:, None]).mean(1) <= 1 - least):
        counts = Counter(votes[q].tolist())
        agree = counts.pop(str(labels[q]), 0)
        other, n = max(counts.items(), key=lambda vote: vote[1])  # of equal ones the nearer: counted in order
        if n < least * k - 1e-9:
            continue
        alike = float(similarity[q][votes[q] == other].mean())
        at = int(tested.query[q])
        shares = [n / k, agree / k, round(alike, 4)]
        rows.append([int(tested.rows[at]), tested.file(at), str(labels[q]), other, *shares])
    rows.sort(key=lambda row: (-row[4], row[5], -row[6], row[0]))
    return Table("mislabelled", COLUMNS, rows)


def neighbours_of(tested: Tested, row: int, k: int, most: int = BESIDE) -> list[tuple[int, str]]:
    """Row and class of the nearest neighbours of an image."""
    q = int(np.flatnonzero(tested.rows[tested.query] == row)[0])
    return [(int(tested.rows[p]), str(tested.labels[p])) for p in tested.nearest.place[q, : min(k, most)]]


@dataclass
class Suspects(Part):
    """The images with their nearest neighbours.

    Parameters:
        beside: row -> rows and classes of its nearest neighbours.
        tiles: row -> number of its thumbnail in the sprite, or None.
        k: how many neighbours voted.
        total: how many images fit the rule.
    """

    beside: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    tiles: dict[int, int | None] = field(default_factory=dict)
    k: int = NEAREST
    total: int = 0

    def html(self) -> Markup:
        """One card per image."""
        assert self.table is not None
        cards = Markup("").join(self._card(row) for row in self.table.records()[:SHOWN])
        shown, listed = min(SHOWN, len(self.table.rows)), len(self.table.rows)
        more = f"Left the image, then its nearest neighbours. Shown: {shown:,} of {self.total:,}; the download has "
        more += f"{listed:,}."
        return Markup('<ul class="cards">{}</ul><p class="note">{}</p>').format(cards, more)

    def _card(self, row: dict) -> Markup:
        name, other, number = row["class"], row["neighbours' class"], row["row"]
        near = Markup("").join(
            thumb(self.tiles.get(neighbour), f"neighbour: {label}, row {neighbour}")
            for neighbour, label in self.beside.get(number, [])
        )
        votes, agree = round(row["share"] * self.k), round(row["own share"] * self.k)
        counts = f"{votes} of {self.k} neighbours; {agree} agree with the label"
        file = row["file"] or f"image {number}"
        image = thumb(self.tiles.get(number), f"labelled {name}, {file}", "asked")
        return Markup(
            '<li class="card"><p>labelled <strong>{}</strong>, neighbours say <strong>{}</strong><br>'
            '<span class="file">{}</span><br><span class="quiet">{}</span></p>'
            '<div class="pairs"><span class="pair">{}</span><span class="pair">{}</span></div></li>'
        ).format(named(name), named(other), named(file), counts, image, near)
