"""The tournament of Psomas 2020: ranks of ten losses in every experiment on a data set, computed from its tables."""

from dataclasses import dataclass

from nearkin.errors import NearkinError, choices
from nearkin.literature.flags import experiments, over_folds
from nearkin.literature.table import Cell, PublishedTable, scores
from nearkin.literature.tables import table, tables
from nearkin.statistics.ranks import Tournament, tournament

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
    tables_of_dataset = experiments({t.id: t for t in tables()}, name)
    methods, values = scores(tables_of_dataset)  # (N, k)
    printed = table(PRINTED[name]) if name in PRINTED else None
    return PublishedTournament(name, tuple(methods), tuple(tables_of_dataset), tournament(values), printed)


def published_tournament_table(dataset: str = "CUB200-2011") -> tuple[list[str], list[list[str]], list[str]]:
    """The tournament as it is shown, least total first: names of the columns, one text per cell, notes below."""
    result = published_tournament(dataset)
    header = ["method", "ranks", "total", "average", "std"]
    header += [f"printed {c}" for c in ("total", "average", "std")] if result.printed else []
    order = sorted(range(len(result.methods)), key=lambda i: result.ranked.total[i])
    rows = []
    for i in order:
        ranks = " ".join(f"{rank:g}" for rank in result.ranked.ranks[:, i])
        computed = [f"{result.ranked.total[i]:g}", f"{result.ranked.average[i]:.2f}", f"{result.ranked.std[i]:.2f}"]
        rows.append([result.methods[i], ranks, *computed, *_printed(result.printed, result.methods[i])])
    notes = [f"ranks are by Recall@1 in tables {', '.join(t.table for t in result.experiments)}; 1 is best"]
    if result.printed:
        notes += [flag.words for flag in result.printed.flags]
    else:
        notes.append(f"the source prints no tournament on {result.dataset}")
    return header, rows, notes


def _printed(printed: PublishedTable | None, method: str) -> list[str]:
    if printed is None:
        return []
    cells = enumerate(printed.rows[place := printed.row(method)].cells)
    digits = (0, 2, 2)
    return [
        f"{cell.mean:.{digits[j]}f}" + " !" * ((place, j) in printed.flagged)
        for j, cell in cells
        if isinstance(cell, Cell)
    ]


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
