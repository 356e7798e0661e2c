"""Which classes are taken for which: the class of the nearest neighbour against the class of the query."""

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from nearkin.errors import NearkinError
from nearkin.pages._base import Figure, Part, Section, Words
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import Sprite, named, thumb
from nearkin.pages._tested import Tested
from nearkin.present import Column, Heatmap, Table
from nearkin.units import COUNT, SHARE, counted

PAIRS, SHOWN, EXAMPLES = 100, 12, 3  # in the table, with pictures, pictures of each
CLASSES = 30  # of the heatmap
QUERIES, PART = Column("queries", unit=COUNT), Column("share", unit=SHARE)
PAIRED: list[Column | str] = ["class", "taken for", QUERIES, Column("of", unit=COUNT), PART]
CELLS: list[Column | str] = ["class", "taken for", PART, QUERIES]


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
        counts = confusion(tested)
    except NearkinError as error:
        return Section(id, title, lead, [Words(f"Nothing can be said: {error}.", tone="warning")])
    total = sum(counts.queries.values())
    wrong = sum(n for (right, taken), n in counts.pairs.items() if right != taken)
    words = f"A query is taken for the class of its nearest neighbour: wrongly in {wrong:,} of {total:,} cases."
    if counts.lone:
        words += f" Left out: {counted(counts.lone, 'query', 'queries')} without another image of the same class."
    table = pair_table(counts)
    if not table.rows:
        return Section(id, title, lead, [Words(words)])
    pictures = Pictures(tested, sprite)
    examples = {tuple(row[:2]): example_rows(tested, row[0], row[1]) for row in table.rows[:SHOWN]}
    tiles = pictures.tiles(row for pairs in examples.values() for pair in pairs for row in pair)
    parts: list[Part] = [Words(words), *pictures.gaps()]
    parts.append(Pairs(f"{id}-pairs", "The pairs that are confused most", table, examples=examples, tiles=tiles))
    if (cells := cell_table(counts)) is not None:
        n, first = len(set(cells.column("class"))), table.rows[0]
        chart = Heatmap(
            name=f"{id}-heatmap",
            title="The classes that are confused most",
            table=cells,
            x="taken for",
            y="class",
            value="share",
            alt=f"Per cent of the queries of a class (rows) whose nearest neighbour has another class (columns), for "
            f"the {n} classes with the most mistakes. The most frequent mistake: {first[0]} taken for {first[1]}.",
            notes=[
                "Classes that are taken for each other stand beside each other. A cell is empty where that never "
                "happens, and on the diagonal, which is right."
            ],
        )
        parts.append(Figure(chart))
    return Section(id, title, lead, parts)


def confusion(tested: Tested) -> Confusion:
    """Count what the queries of every class are taken for."""
    taken = tested.labels[tested.nearest.place[:, 0]]  # (Q,)
    right = tested.labels[tested.query]  # (Q,)
    counts = tested.sets.relevant > 0  # (Q,)
    pairs = Counter(zip(right[counts].tolist(), taken[counts].tolist(), strict=True))
    return Confusion(pairs, Counter(right[counts].tolist()), int((~counts).sum()))


def pair_table(counts: Confusion, most: int = PAIRS) -> Table:
    """The pairs with the most queries; of equal ones, those with the larger share of their class first."""
    rows: list[list[Any]] = [
        [right, taken, n, counts.queries[right], n / counts.queries[right]]
        for (right, taken), n in counts.pairs.items()
        if right != taken
    ]
    rows.sort(key=lambda row: (-row[2], -row[4], row[0], row[1]))
    return Table("confusion", PAIRED, rows[:most])


def cell_table(counts: Confusion, most: int = CLASSES) -> Table | None:
    """The heatmap of the classes that take part in the most mistakes, one row per cell, empty where nothing is
    confused; None below two classes."""
    mistakes: Counter[str] = Counter()
    for (right, taken), n in counts.pairs.items():
        if right != taken:
            mistakes.update({right: n, taken: n})
    classes = sorted(mistakes, key=lambda name: (-mistakes[name], name))[:most]
    if len(classes) < 2:
        return None
    share = np.array([[counts.pairs[a, b] / max(counts.queries[a], 1) for b in classes] for a in classes])  # (C, C)
    if len(classes) > 2:
        np.fill_diagonal(share, 0)
        apart = share.max() - np.maximum(share, share.T)
        np.fill_diagonal(apart, 0)
        classes = [classes[i] for i in leaves_list(linkage(squareform(apart, checks=False), "average"))]
    rows: list[list[Any]] = []
    for a, b in itertools.product(classes, classes):
        n = counts.pairs[a, b] if a != b else 0
        rows.append([a, b, n / counts.queries[a], n] if n else [a, b, None, None])
    return Table("confusion-cells", CELLS, rows)


def example_rows(tested: Tested, right: str, taken: str, most: int = EXAMPLES) -> list[tuple[int, int]]:
    """Rows of queries of one class and of their nearest neighbours of the other, the most similar first."""
    place, similarity = tested.nearest.place[:, 0], tested.nearest.similarity[:, 0]
    fits = np.flatnonzero((tested.labels[tested.query] == right) & (tested.labels[place] == taken))
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
            f"The download has {counted(len(self.table), 'pair')}.",
        )

    def _card(self, row: dict) -> Markup:
        right, taken = row["class"], row["taken for"]
        shown = Markup("").join(
            Markup('<span class="pair">{}{}</span>').format(
                thumb(self.tiles.get(a), f"query: {right}, row {a}"),
                thumb(self.tiles.get(b), f"nearest: {taken}, row {b}"),
            )
            for a, b in self.examples.get((right, taken), [])
        )
        share = f"{row['queries']:,} of {counted(row['of'], 'query', 'queries')}, {SHARE.text(row['share'], 0)} %"
        return Markup(
            '<li class="card"><p><strong>{}</strong> taken for <strong>{}</strong><br><span class="quiet">{}</span></p>'
            '<div class="pairs">{}</div></li>'
        ).format(named(right), named(taken), share, shown)
