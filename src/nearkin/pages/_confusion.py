"""Which classes are taken for which: the class of the nearest neighbour against the class of the query."""

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from nearkin.pages._base import Figure, Part, Section, Words, attempt
from nearkin.pages._pictured import Cards
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import Sprite, named
from nearkin.pages._tested import Tested
from nearkin.present import Column, Heatmap, Table
from nearkin.units import COUNT, SHARE, counted

PAIRS, SHOWN, EXAMPLES = 100, 12, 3  # in the table, with pictures, pictures of each
CLASSES = 30  # of the heatmap
QUERIES, PART = Column("queries", unit=COUNT), Column("share", unit=SHARE)
PAIRED: list[Column | str] = ["class", "taken for", QUERIES, Column("of", unit=COUNT), PART]
CELLS: list[Column | str] = ["class", "taken for", PART, QUERIES]
CARD = Markup('<strong>{}</strong> taken for <strong>{}</strong><br><span class="quiet">{}</span>')


@dataclass(frozen=True)
class Confusion:
    """Counts of (class of the query, class of its nearest neighbour), and what they are shares of."""

    pairs: Counter[tuple[str, str]]
    queries: Counter[str]  # of each class
    lone: int  # queries left out: nothing of their class can be found


def section(tested: Tested, sprite: Sprite) -> Section:
    """What a run confuses, in words and pictures that go into the sprite, and as a heatmap."""
    lead, nothing = f"Which classes {tested.name} takes for which.", "Nothing can be said"
    return attempt("confusion", "Classes that are confused", lead, nothing, lambda: _parts(tested, sprite))


def _parts(tested: Tested, sprite: Sprite) -> list[Part]:
    counts = confusion(tested)
    total = sum(counts.queries.values())
    wrong = sum(n for (right, taken), n in counts.pairs.items() if right != taken)
    words = f"A query is taken for the class of its nearest neighbour: wrongly in {wrong:,} of {total:,} cases."
    if counts.lone:
        words += f" Left out: {counted(counts.lone, 'query', 'queries')} without another image of the same class."
    table = pair_table(counts)
    if not table.rows:
        return [Words(words)]
    pictures, cells = Pictures(tested, sprite), cell_table(counts)
    cards = _cards(tested, table, pictures)
    return [Words(words), *pictures.gaps(), cards, *([_heatmap(cells, table.rows[0])] if cells is not None else [])]


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


def _heatmap(cells: Table, first: list[Any]) -> Figure:
    classes = len(set(cells.column("class")))
    chart = Heatmap(
        name="confusion-heatmap",
        title="The classes that are confused most",
        table=cells,
        x="taken for",
        y="class",
        value="share",
        alt=f"Per cent of the queries of a class (rows) whose nearest neighbour has another class (columns), for the "
        f"{classes} classes with the most mistakes. The most frequent mistake: {first[0]} taken for {first[1]}.",
        notes=[
            "Classes that are taken for each other stand beside each other. A cell is empty where that never happens, "
            "and on the diagonal, which is right."
        ],
    )
    return Figure(chart)


def example_rows(tested: Tested, right: str, taken: str, most: int = EXAMPLES) -> list[tuple[int, int]]:
    """Rows of queries of one class and of their nearest neighbours of the other, the most similar first."""
    place, similarity = tested.nearest.place[:, 0], tested.nearest.similarity[:, 0]
    fits = np.flatnonzero((tested.labels[tested.query] == right) & (tested.labels[place] == taken))
    order = sorted(fits, key=lambda q: (-similarity[q], q))[:most]
    return [(int(tested.rows[tested.query[q]]), int(tested.rows[place[q]])) for q in order]


def _cards(tested: Tested, table: Table, pictures: Pictures) -> Cards:
    """The pairs that are confused most in words and pictures, one card each."""
    cards = []
    for row in table.records()[:SHOWN]:
        right, taken = row["class"], row["taken for"]
        groups = [
            [(a, f"query: {right}, {tested.image(a)}", ""), (b, f"nearest: {taken}, {tested.image(b)}", "")]
            for a, b in example_rows(tested, right, taken)
        ]
        share = f"{row['queries']:,} of {counted(row['of'], 'query', 'queries')}, {SHARE.text(row['share'], 0)} %"
        cards.append((CARD.format(named(right), named(taken), share), groups))
    note = "Left the query, right its nearest neighbour; the examples that are most alike. The download has "
    tiles = pictures.tiles(row for _, groups in cards for group in groups for row, *_ in group)
    note += f"{counted(len(table), 'pair')}."
    return Cards("confusion-pairs", "The pairs that are confused most", table, tiles, cards, note)
