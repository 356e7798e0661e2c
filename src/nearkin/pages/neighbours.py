"""Nearest-neighbour sheets: queries, what was found for them, and what of it is right; for two methods side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from nearkin.errors import NearkinError
from nearkin.pages.base import Part, Section, Table, Words
from nearkin.pages.pixels import Pictures
from nearkin.pages.sprite import Sprite, named, thumb
from nearkin.pages.tested import Tested

SHOWN = 8  # neighbours of a query
EACH = 4  # queries of every kind
HEADER = [
    "kind",
    "query row",
    "query class",
    "method",
    "map_at_r",
    "rank",
    "neighbour row",
    "class",
    "similarity",
    "right",
]
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


def section(best: Tested, other: Tested | None, sprite: Sprite, id: str = "neighbours") -> Section:
    """The section of a page.

    Parameters:
        best: the run that queries are picked by.
        other: a run on the same test images, shown beside it; or None.
        sprite: where the pictures go.
        id: of the section; its parts' begin with it.
    """
    lead = f"What {best.name} finds for its best, its middling and its most confusing queries"
    lead += f", and what {other.name} finds for the same." if other else "."
    try:
        table = neighbour_table(best, other)
    except NearkinError as error:
        return Section(id, "Nearest neighbours", lead, [Words(f"There are no sheets: {error}.", tone="warning")])
    pictures = Pictures(best, sprite)
    tiles = pictures.tiles(dict.fromkeys(table.column("query row") + table.column("neighbour row")))
    k = max(table.column("rank"))
    words = f"{RULE.format(name=best.name, k=k)} Similarity is the cosine."
    if other is not None and other.name != best.name:
        words += f" Both methods are shown by their first seed, {best.name} above {other.name}."
    parts: list[Part] = [Words(words), *pictures.gaps()]
    for kind, title in KINDS.items():
        rows = [row for row in table.rows if row[0] == kind]
        name = f"{id}-{kind.split()[-1]}"
        parts.append(Sheet(name, title, Table(name, HEADER, rows), tiles=tiles))
    return Section(id, "Nearest neighbours", lead, parts)


def neighbour_table(best: Tested, other: Tested | None = None, each: int = EACH, k: int = SHOWN) -> Table:
    """One row per query, method and rank. `right`: has the neighbour the query's class?"""
    picked = picked_queries(best, each, k)
    queries = np.array([q for some in picked.values() for q in some])
    methods = [(best, queries)]
    if other is not None:
        methods.append((other, np.array([_number(other, best.rows[best.query[q]]) for q in queries])))
    answers = [(tested, own, tested.nearest_of(own, k)) for tested, own in methods]
    rows = []
    for i, kind in enumerate(kind for kind, some in picked.items() for _ in some):
        place = best.query[queries[i]]
        name = best.labels[place]
        for tested, own, found in answers:
            value = np.nan if tested.precision is None else tested.precision[own[i]]
            told = [kind, int(best.rows[place]), str(name), tested.name, None if np.isnan(value) else float(value)]
            for j, near in enumerate(found.place[i]):
                similarity, right = round(float(found.similarity[i, j]), 4), bool(tested.labels[near] == name)
                rows.append([*told, j + 1, int(tested.rows[near]), str(tested.labels[near]), similarity, right])
    return Table("neighbours", HEADER, rows)


def picked_queries(tested: Tested, each: int = EACH, k: int = SHOWN) -> dict[str, list[int]]:
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
    found = {}
    for kind, order in orders.items():
        found[kind] = _one_of_each_class([int(q) for q in order if q not in taken], labels, each)
        taken |= set(found[kind])
    return {kind: found[kind] for kind in KINDS}


def _one_of_each_class(order: Sequence[int], labels: np.ndarray, most: int) -> list[int]:
    seen: set[str] = set()
    queries: list[int] = []
    for q in order:
        if len(queries) == most:
            break
        if labels[q] not in seen:
            seen.add(labels[q])
            queries.append(q)
    return queries


def _number(tested: Tested, row: int) -> int:
    """The number among a run's queries of the image with that row."""
    found = np.flatnonzero(tested.rows[tested.query] == row)
    if not len(found):
        raise NearkinError(f"{tested.name} was tested on other images (row {row} is not among its queries)")
    return int(found[0])


@dataclass
class Sheet(Part):
    """Queries with their neighbours, each framed and marked: ✓ is right, ✗ is wrong.

    Parameters:
        tiles: row -> number of its thumbnail in the sprite, or None.
    """

    tiles: dict[int, int | None] = field(default_factory=dict)

    def html(self) -> Markup:
        """One block per query, one line per method."""
        assert self.table is not None
        blocks: dict[int, dict[str, list[dict]]] = {}
        for row in self.table.records():
            blocks.setdefault(row["query row"], {}).setdefault(row["method"], []).append(row)
        if not blocks:
            return Markup("<p>There are none.</p>")
        return Markup("\n").join(self._block(methods) for methods in blocks.values())

    def _block(self, methods: dict[str, list[dict]]) -> Markup:
        first = next(iter(methods.values()))[0]
        row, name = first["query row"], first["query class"]
        query = Markup(
            '<figure class="query">{}<figcaption><span class="name">{}</span><span class="quiet">query, row {}</span>'
            "</figcaption></figure>"
        ).format(thumb(self.tiles.get(row), f"query: {name}, row {row}"), named(name), row)
        lines = Markup("").join(self._line(method, found) for method, found in methods.items())
        return Markup('<div class="sheet">{}<div class="answers">{}</div></div>').format(query, lines)

    def _line(self, method: str, found: list[dict]) -> Markup:
        value, right = found[0]["map_at_r"], sum(each["right"] for each in found)
        told = f"{right} of {len(found)} right" + ("" if value is None else f", MAP@R {100 * value:.1f} %")
        items = Markup("").join(self._item(each) for each in found)
        return Markup(
            '<div class="answer"><p><strong>{}</strong> <span class="quiet">{}</span></p>'
            '<ol class="found">{}</ol></div>'
        ).format(method, told, items)

    def _item(self, each: dict) -> Markup:
        word, mark = ("right", "✓") if each["right"] else ("wrong", "✗")
        label = f"{word}: {each['class']}, row {each['neighbour row']}, similarity {each['similarity']:.3f}"
        return Markup(
            '<li class="{}">{}<span class="mark" aria-hidden="true">{}</span>'
            '<span class="name" title="{}">{}</span></li>'
        ).format(word, thumb(self.tiles.get(each["neighbour row"]), label), mark, each["class"], named(each["class"]))
