"""Nearest-neighbour sheets: queries, what was found for them, and what of it is right; for two methods side by side."""

from collections.abc import Sequence

import numpy as np

from nearkin.errors import NearkinError
from nearkin.pages._base import Part, Section, Words, attempt
from nearkin.pages._pixels import Pictures
from nearkin.pages._sheets import Sheet
from nearkin.pages._sprite import Sprite
from nearkin.pages._tested import Tested
from nearkin.pages._words import metric_column
from nearkin.present import Column, Table
from nearkin.units import NUMBER

SHOWN = 8  # neighbours of a query
PER_KIND = 4  # queries of every kind
QUERY = ["kind", "query row", "query file", "query class"]
ANSWER: list[Column | str] = ["method", metric_column("map_at_r"), "rank", "neighbour row", "class"]
COLUMNS: list[Column | str] = [*QUERY, *ANSWER, Column("similarity", unit=NUMBER), "right"]
KINDS = {
    "best": "The queries that are answered best",
    "median": "Queries in the middle",
    "most confusing": "The queries that confuse most",
}
RULE = (
    "Queries are picked by their MAP@R under {name}, at most one of each class: the highest, those nearest to the "
    "median, and the lowest. Of equal ones the first row is taken; of equally low ones, that whose {k} nearest are the "
    "most similar."
)


def section(best: Tested, other: Tested | None, sprite: Sprite) -> Section:
    """Sheets of queries that one run picks, with pictures that go into the sprite; `other` is a run on the same test
    images that is shown beside it."""
    lead = f"What {best.name} finds for its best, its middling and its most confusing queries"
    lead += f", and what {other.name} finds for the same." if other else "."
    title, nothing = "Nearest neighbours", "There are no sheets"
    return attempt("neighbours", title, lead, nothing, lambda: _sheets(best, other, sprite))


def _sheets(best: Tested, other: Tested | None, sprite: Sprite) -> list[Part]:
    table, pictures = neighbour_table(best, other), Pictures(best, sprite)
    tiles = pictures.tiles(table.column("query row") + table.column("neighbour row"))
    words = f"{RULE.format(name=best.name, k=max(table.column('rank')))} Similarity is the cosine."
    if other is not None and other.name != best.name:
        words += f" Both methods are shown by their first seed, {best.name} above {other.name}."
    parts: list[Part] = [Words(words), *pictures.gaps()]
    for kind, title in KINDS.items():
        name = f"neighbours-{kind.split()[-1]}"
        part = Table(name, COLUMNS, [row for row in table.rows if row[0] == kind])
        parts.append(Sheet(name, title, part, tiles, pictures))
    return parts


def typical(best: Tested, other: Tested | None, sprite: Sprite, k: int = 5) -> list[Part]:
    """One query in the middle, whose MAP@R is nearest to the median; nothing without values or pictures."""
    try:
        queries = picked_queries(best)["median"][:1]
        table = neighbour_table(best, other, {"median": queries}, k)
    except NearkinError:  # the section on neighbours says why
        return []
    pictures = Pictures(best, sprite)
    tiles = pictures.tiles(table.column("query row") + table.column("neighbour row"))
    if not table.rows or all(tile is None for tile in tiles.values()):
        return []
    table.name = "first-query"
    return [Sheet(table.name, "A typical query and what is found for it", table, tiles, pictures)]


def neighbour_table(
    best: Tested, other: Tested | None = None, picked: dict[str, list[int]] | None = None, k: int = SHOWN
) -> Table:
    """One row per query, method and rank. `right`: has the neighbour the query's class?

    Parameters:
        best: the run that queries are picked by.
        other: a run on the same test images, or None.
        picked: kind -> numbers of queries; by default those that `picked_queries` picks.
        k: neighbours of a query.
    """
    picked = picked_queries(best, k=k) if picked is None else picked
    queries = np.array([q for numbers in picked.values() for q in numbers])
    methods = [(best, queries)]
    if other is not None:
        methods.append((other, np.array([_number(other, best.rows[best.query[q]]) for q in queries])))
    answers = [(tested, numbers, tested.nearest_of(numbers, k)) for tested, numbers in methods]
    rows = []
    for i, kind in enumerate(kind for kind, numbers in picked.items() for _ in numbers):
        place = best.query[queries[i]]
        query = [kind, int(best.rows[place]), best.file(place), str(best.labels[place])]
        for tested, numbers, nearest in answers:
            value = np.nan if tested.precision is None else tested.precision[numbers[i]]
            method = [tested.name, None if np.isnan(value) else float(value)]
            for j, near in enumerate(nearest.place[i]):
                label, similarity = str(tested.labels[near]), round(float(nearest.similarity[i, j]), 4)
                rows.append([*query, *method, j + 1, int(tested.rows[near]), label, similarity, label == query[-1]])
    return Table("neighbours", COLUMNS, rows)


def picked_queries(tested: Tested, per_kind: int = PER_KIND, k: int = SHOWN) -> dict[str, list[int]]:
    """Kind -> numbers of queries, by the rule of the page; a query stands in one kind only."""
    value = tested.precision  # (Q,)
    if value is None:
        name = tested.run.hash
        raise NearkinError(
            f"the MAP@R of every query is not stored in run {name}; `nearkin evaluate {name} "
            f"--per-query {name}.parquet` computes it"
        )
    defined = np.flatnonzero(~np.isnan(value))
    closeness = tested.nearest.similarity[:, :k].mean(1)  # (Q,)
    labels = tested.labels[tested.query]
    orders = {
        "best": sorted(defined, key=lambda q: (-value[q], q)),
        "most confusing": sorted(defined, key=lambda q: (value[q], -closeness[q], q)),
        "median": sorted(defined, key=lambda q: (abs(value[q] - np.median(value[defined])), q)),
    }
    taken: set[int] = set()
    picked = {}
    for kind, order in orders.items():
        picked[kind] = _one_of_each_class([int(q) for q in order if q not in taken], labels, per_kind)
        taken |= set(picked[kind])
    return {kind: picked[kind] for kind in KINDS}


def _one_of_each_class(order: Sequence[int], labels: np.ndarray, most: int) -> list[int]:
    first: dict[str, int] = {}
    for q in order:
        first.setdefault(str(labels[q]), q)
    return list(first.values())[:most]


def _number(tested: Tested, row: int) -> int:
    """The number among a run's queries of the image with that row."""
    if row not in tested.query_of:
        raise NearkinError(f"{tested.name} was tested on other images (row {row} is not among its queries)")
    return tested.query_of[row]
