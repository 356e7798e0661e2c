"""Which classes are taken for which: the class of the nearest neighbour against the class of the query."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from nearkin.errors import NearkinError
from nearkin.pages.base import Chart, Part, Section, Table, Words
from nearkin.pages.pixels import Pictures
from nearkin.pages.sprite import Sprite, named, thumb
from nearkin.pages.tested import Tested

PAIRS, SHOWN, EXAMPLES = 100, 12, 3  # in the table, with pictures, pictures of each
CLASSES = 30  # of the heatmap
HEADER = ["class", "taken for", "queries", "of", "share"]
CELLS = ["class", "taken for", "share", "queries"]


@dataclass(frozen=True)
class Confusion:
    """Counts of (class of the query, class of its nearest neighbour), and what they are shares of."""

    pairs: Counter[tuple[str, str]]
    queries: Counter[str]  # of each class
    lone: int  # queries left out: nothing of their class can be found


def section(tested: Tested, sprite: Sprite, id: str = "confusion") -> Section:
    """The section of a page.

    Parameters:
        tested: the run that is looked at.
        sprite: where the pictures go.
        id: of the section; its parts' begin with it.
    """
    title, lead = "Classes that are confused", f"Which classes {tested.name} takes for which."
    try:
        found = confusion(tested)
    except NearkinError as error:
        return Section(id, title, lead, [Words(f"Nothing can be said: {error}.", tone="warning")])
    total = sum(found.queries.values())
    wrong = sum(n for (own, other), n in found.pairs.items() if own != other)
    words = f"A query is taken for the class of its nearest neighbour: wrongly in {wrong:,} of {total:,} cases."
    if found.lone:
        words += f" {found.lone:,} queries of whose class nothing else can be found are left out."
    table = pair_table(found)
    if not table.rows:
        return Section(id, title, lead, [Words(words)])
    pictures = Pictures(tested, sprite)
    examples = {tuple(row[:2]): example_rows(tested, row[0], row[1]) for row in table.rows[:SHOWN]}
    tiles = pictures.tiles(row for pairs in examples.values() for pair in pairs for row in pair)
    parts: list[Part] = [Words(words), *pictures.gaps()]
    parts.append(Pairs(f"{id}-pairs", "The pairs that are confused most", table, examples=examples, tiles=tiles))
    if (cells := cell_table(found)) is not None:
        n, first = len(set(cells.column("class"))), table.rows[0]
        parts.append(
            Chart(
                f"{id}-heatmap",
                "The classes that are confused most",
                cells,
                form="heatmap",
                x="taken for",
                y="class",
                value="share",
                percent=("share",),
                alt=f"Share of the queries of a class (rows) whose nearest neighbour has another class (columns), for "
                f"the {n} classes with the most mistakes. The most frequent mistake: {first[0]} taken for {first[1]}.",
                notes=[
                    "Classes that are taken for each other stand beside each other. A cell is empty where that never "
                    "happens, and on the diagonal, which is right."
                ],
            )
        )
    return Section(id, title, lead, parts)


def confusion(tested: Tested) -> Confusion:
    """Count what the queries of every class are taken for."""
    nearest = tested.labels[tested.nearest.place[:, 0]]  # (Q,)
    own = tested.labels[tested.query]  # (Q,)
    counts = tested.sets.relevant > 0  # (Q,)
    pairs = Counter(zip(own[counts].tolist(), nearest[counts].tolist(), strict=True))
    return Confusion(pairs, Counter(own[counts].tolist()), int((~counts).sum()))


def pair_table(found: Confusion, most: int = PAIRS) -> Table:
    """The pairs with the most queries; of equal ones, those with the larger share of their class first."""
    rows: list[list[Any]] = [
        [own, other, n, found.queries[own], n / found.queries[own]]
        for (own, other), n in found.pairs.items()
        if own != other
    ]
    rows.sort(key=lambda row: (-row[2], -row[4], row[0], row[1]))
    return Table("confusion", HEADER, rows[:most])


def cell_table(found: Confusion, most: int = CLASSES) -> Table | None:
    """The heatmap of the classes that take part in the most mistakes, one row per cell, empty where nothing is
    confused; None below two classes."""
    mistakes: Counter[str] = Counter()
    for (own, other), n in found.pairs.items():
        if own != other:
            mistakes.update({own: n, other: n})
    classes = [name for name, _ in sorted(mistakes.items(), key=lambda each: (-each[1], each[0]))[:most]]
    if len(classes) < 2:
        return None
    share = np.array([[found.pairs[a, b] / max(found.queries[a], 1) for b in classes] for a in classes])  # (C, C)
    if len(classes) > 2:
        np.fill_diagonal(share, 0)
        apart = share.max() - np.maximum(share, share.T)
        np.fill_diagonal(apart, 0)
        classes = [classes[i] for i in leaves_list(linkage(squareform(apart, checks=False), "average"))]
    rows = [
        [a, b, None, None]
        if a == b or not found.pairs[a, b]
        else [a, b, found.pairs[a, b] / found.queries[a], found.pairs[a, b]]
        for a in classes
        for b in classes
    ]
    return Table("confusion-cells", CELLS, rows)


def example_rows(tested: Tested, own: str, other: str, most: int = EXAMPLES) -> list[tuple[int, int]]:
    """Rows of queries of one class and of their nearest neighbours of the other, the most similar first."""
    place, similarity = tested.nearest.place[:, 0], tested.nearest.similarity[:, 0]
    fits = np.flatnonzero((tested.labels[tested.query] == own) & (tested.labels[place] == other))
    order = sorted(fits, key=lambda q: (-similarity[q], q))[:most]
    return [(int(tested.rows[tested.query[q]]), int(tested.rows[place[q]])) for q in order]


@dataclass
class Pairs(Part):
    """Confused pairs in words and pictures.

    Parameters:
        examples: (class, taken for) -> rows of a query and its nearest neighbour.
        tiles: row -> number of its thumbnail in the sprite, or None.
    """

    examples: dict[tuple[str, ...], list[tuple[int, int]]] = field(default_factory=dict)
    tiles: dict[int, int | None] = field(default_factory=dict)

    def html(self) -> Markup:
        """One card per pair."""
        assert self.table is not None
        return Markup('<ul class="cards">{}</ul><p class="note">{}</p>').format(
            Markup("").join(self._card(row) for row in self.table.records()[:SHOWN]),
            "Left the query, right its nearest neighbour; the examples that are most alike. "
            f"The download has the first {len(self.table.rows):,} pairs.",
        )

    def _card(self, row: dict) -> Markup:
        own, other = row["class"], row["taken for"]
        shown = Markup("").join(
            Markup('<span class="pair">{}{}</span>').format(
                thumb(self.tiles.get(a), f"query: {own}, row {a}"),
                thumb(self.tiles.get(b), f"nearest: {other}, row {b}"),
            )
            for a, b in self.examples.get((own, other), [])
        )
        told = f"{row['queries']:,} of {row['of']:,} queries, {100 * row['share']:.0f} %"
        return Markup(
            '<li class="card"><p><strong>{}</strong> taken for <strong>{}</strong><br><span class="quiet">{}</span></p>'
            '<div class="pairs">{}</div></li>'
        ).format(named(own), named(other), told, shown)
