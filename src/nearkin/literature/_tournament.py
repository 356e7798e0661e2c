"""The tournament of Psomas 2020: ranks of ten losses in every experiment on a data set, computed from its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearkin.errors import NearkinError, choices
from nearkin.literature._flags import experiments, over_folds
from nearkin.literature.table import Cell, PublishedTable, scores
from nearkin.literature.tables import table, tables
from nearkin.present import Column, Table
from nearkin.units import NUMBER

if TYPE_CHECKING:
    from nearkin.statistics.ranks import Tournament

PRINTED = {"CUB200-2011": "thesis_t11"}  # the only data set whose tournament the thesis prints


@dataclass(frozen=True)
class PublishedTournament:
    """A tournament over published tables: the methods, the tables, their ranks, and the table that prints it."""

    dataset: str
    methods: tuple[str, ...]
    experiments: tuple[PublishedTable, ...]
    ranked: Tournament
    printed: PublishedTable | None  # None: the source has no such table


def datasets() -> list[str]:
    """The data sets that have a tournament."""
    return list(dict.fromkeys(t.dataset[0] for t in tables() if t.source == "psomas2020" and t.table[-1] in "abcd"))


def published_tournament(dataset: str = "CUB200-2011") -> PublishedTournament:
    """Rank ten losses by Recall@1 in each experiment (network x size) that the thesis prints of a data set.

    CUB200-2011 gives its table 11 from tables 6 to 8; Cars196 (tables 9, 20, 21) and SOP (table 10) have none there.
    """
    named = {name.lower(): name for name in datasets()}
    if dataset.lower() not in named:
        raise NearkinError(f"no published tournament on {dataset!r}: {choices(dataset, datasets())}")
    name = named[dataset.lower()]
    from nearkin.statistics.ranks import tournament  # here: the list of published tables needs no scipy

    tables_of_dataset = experiments({t.id: t for t in tables()}, name)
    methods, values = scores(tables_of_dataset)  # (N, k)
    printed = table(PRINTED[name]) if name in PRINTED else None
    return PublishedTournament(name, tuple(methods), tuple(tables_of_dataset), tournament(values), printed)


def published_tournament_table(dataset: str = "CUB200-2011") -> Table:
    """The tournament, least total first, beside what the source prints; a star marks a printed number with a flag."""
    result = published_tournament(dataset)
    ranked, printed = result.ranked, result.printed
    names = ("total", "average", "std")
    columns: list[Any] = ["method", "ranks", "total", *(Column(name, unit=NUMBER, digits=2) for name in names[1:])]
    for name, digits in zip(names if printed else (), (0, 2, 2), strict=False):
        flagged = f"{name} flagged"
        columns += [Column(f"printed {name}", unit=NUMBER, digits=digits, star=flagged), flagged]
    rows = []
    for i in sorted(range(len(result.methods)), key=lambda i: float(ranked.total[i])):
        ranks = " ".join(f"{rank:g}" for rank in ranked.ranks[:, i])
        computed = [float(ranked.total[i]), float(ranked.average[i]), float(ranked.std[i])]
        rows.append([result.methods[i], ranks, *computed, *_printed(printed, result.methods[i])])
    notes = [f"ranks are by Recall@1 in tables {', '.join(t.table for t in result.experiments)}; 1 is best"]
    if printed:
        notes += [f"* {flag.words}" for flag in printed.flags]
    else:
        notes.append(f"the source prints no tournament on {result.dataset}")
    title = f"tournament: Psomas 2020 on {result.dataset}, recomputed from its tables"
    return Table(f"tournament-{result.dataset}", columns, rows, title, notes)


def _printed(printed: PublishedTable | None, method: str) -> list[float | bool]:
    """What the source prints for a method: every number, and whether it has a flag."""
    if printed is None:
        return []
    place = printed.row(method)
    cells = [(j, cell) for j, cell in enumerate(printed.rows[place].cells) if isinstance(cell, Cell)]
    return [value for j, cell in cells for value in (cell.mean, (place, j) in printed.flagged)]


@dataclass(frozen=True)
class FoldMean:
    """Mean and sample standard deviation over folds, computed and as printed."""

    mean: float
    std: float
    printed: Cell


def published_folds() -> FoldMean:
    """The thesis's table 12 (ten folds, MultiSimilarity) from its table 13 (each fold)."""
    mean, std = over_folds(table("thesis_t13"))
    printed = table("thesis_t12")
    cell = printed.rows[printed.row("MultiSimilarity")].cells[0]
    assert isinstance(cell, Cell)
    return FoldMean(mean, std, cell)
