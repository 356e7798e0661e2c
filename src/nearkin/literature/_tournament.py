"""The tournament of Psomas 2020: ranks of ten losses in every experiment on a data set, computed from its tables."""

from dataclasses import dataclass
from typing import Any

from nearkin.errors import NearkinError, choices
from nearkin.literature._flags import experiments, over_ranks, ranks_of
from nearkin.literature.table import Cell, PublishedTable
from nearkin.literature.tables import table, tables
from nearkin.present import Column, Table
from nearkin.units import NUMBER

PRINTED = {"CUB200-2011": "thesis_t11"}  # the only data set whose tournament the thesis prints


@dataclass(frozen=True)
class PublishedTournament:
    """A tournament over published tables: the tables, the ranks of every method, and the table that prints it."""

    dataset: str
    experiments: list[PublishedTable]
    ranks: dict[str, list[float]]  # method -> its rank in every experiment
    printed: PublishedTable | None  # None: the source has no such table

    @property
    def sums(self) -> dict[str, dict[str, float]]:
        """Method -> total, average and std of its ranks, the least total first."""
        sums = {method: over_ranks(ranks) for method, ranks in self.ranks.items()}
        return dict(sorted(sums.items(), key=lambda item: item[1]["total"]))


def datasets() -> list[str]:
    """The data sets that have a tournament."""
    return list(dict.fromkeys(t.dataset[0] for t in tables() if t.source == "psomas2020" and t.table[-1] in "abcd"))


def published_tournament(dataset: str = "CUB200-2011") -> PublishedTournament:
    """Rank ten losses by Recall@1 in each experiment (network x size) that the thesis prints of a data set.

    CUB200-2011 gives its table 11 from tables 6 to 8; Cars196 (tables 9, 20, 21) and SOP (table 10) have none there.
    """
    names = {name.lower(): name for name in datasets()}
    if dataset.lower() not in names:
        raise NearkinError(f"no published tournament on {dataset!r}: {choices(dataset, datasets())}")
    name = names[dataset.lower()]
    compared = experiments({t.id: t for t in tables()}, name)
    printed = table(PRINTED[name]) if name in PRINTED else None
    return PublishedTournament(name, compared, ranks_of(compared), printed)


def published_tournament_table(dataset: str = "CUB200-2011") -> Table:
    """The tournament, least total first, beside what the source prints; a star marks a printed number with a flag."""
    result = published_tournament(dataset)
    printed, digits = result.printed, {"total": 0, "average": 2, "std": 2}
    columns: list[Any] = ["method", "ranks", "total"]
    columns += [Column(name, unit=NUMBER, digits=digits[name]) for name in ("average", "std")]
    for name in digits if printed else ():
        flagged = f"{name} flagged"
        columns += [Column(f"printed {name}", unit=NUMBER, digits=digits[name], star=flagged), flagged]
    rows = []
    for method, sums in result.sums.items():
        ranks = " ".join(f"{rank:g}" for rank in result.ranks[method])
        rows.append([method, ranks, *sums.values(), *_printed(printed, method)])
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
