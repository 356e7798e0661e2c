"""Errors in published tables, detected from the numbers themselves.

recall falls        Recall@k below Recall@j although k > j: impossible
MAP@R above RP      impossible: the columns are swapped
misprint            a total, average or deviation, of ranks or folds, that the source's own tables do not give; or a
                    count of images or classes that does not add up
no such table       settings of experiments that the source announces, and has no results of
repeated            all rows of another table stand in this one, number by number
unreadable          cells without a value
transposed          a null cell of a symmetric table, read from its other half
not symmetric       the two halves of a symmetric table differ: a row has most likely slipped by one cell
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, stdev

from nearkin.literature.table import Cell, Flag, PublishedTable

Tables = Mapping[str, PublishedTable]
ROUNDING = 0.01 + 1e-9  # one step of the last printed digit: some are cut off, not rounded


def flags_of(tables: Tables) -> dict[str, list[Flag]]:
    """Id -> flags of that table, given all tables as they are printed."""
    flags = {name: [*_recall(t), *_swapped(t), *_halves(t), *_unreadable(t)] for name, t in tables.items()}
    for name, flag in [*_repeated(tables), *_tournament(tables), *_folds(tables), *_counts(tables), *_absent(tables)]:
        flags[name].append(flag)
    return flags


def experiments(tables: Tables, dataset: str) -> list[PublishedTable]:
    """The thesis's comparisons of ten losses on a data set, one per network and size: tables 6a to 10d, 20a to 21d."""
    thesis_tables = [table for table in tables.values() if table.source == "psomas2020" and table.table[-1] in "abcd"]
    return [table for table in thesis_tables if table.dataset == (dataset,)]


def symmetric(table: PublishedTable) -> bool:
    """Is it a table of methods against methods?"""
    return [column.name for column in table.columns] == [row.method for row in table.rows]


def transposed(table: PublishedTable) -> PublishedTable:
    """A symmetric table with its null cells read from the other half; any other table as it is."""
    if not symmetric(table):
        return table
    printed = [row.cells for row in table.rows]
    rows = [
        row._replace(cells=tuple(printed[j][i] if cell is None else cell for j, cell in enumerate(row.cells)))
        for i, row in enumerate(table.rows)
    ]
    return replace(table, rows=tuple(rows))


def _at(name: str, column: str) -> int | None:
    """The k of a column Recall@k."""
    head, _, k = column.partition("@")
    return int(k) if head == name and k.isdigit() else None


def _recall(table: PublishedTable) -> Iterator[Flag]:
    for i, row in enumerate(table.rows):
        for part in dict.fromkeys(column.part for column in table.columns):
            at = [(k, j) for j, c in enumerate(table.columns) if c.part == part and (k := _at("R", c.name)) is not None]
            read = [(k, j, cell.mean) for k, j in sorted(at) if isinstance(cell := row.cells[j], Cell)]
            for (k, _, before), (more, j, after) in pairwise(read):
                if after < before:
                    words = f"{row.method}: R@{more} of {after:g} is below R@{k} of {before:g}, which cannot be"
                    yield Flag("recall falls", words, ((i, j),))


def _swapped(table: PublishedTable) -> Iterator[Flag]:
    for i, row in enumerate(table.rows):
        for part in dict.fromkeys(column.part for column in table.columns):
            at = {c.name: j for j, c in enumerate(table.columns) if c.part == part}
            if not {"RP", "MAP@R"} <= at.keys():
                continue
            precision, mean = row.cells[at["RP"]], row.cells[at["MAP@R"]]
            if isinstance(precision, Cell) and isinstance(mean, Cell) and mean.mean > precision.mean:
                words = f"{row.method}: MAP@R of {mean.mean:g} is above RP of {precision.mean:g}, which cannot be"
                yield Flag("MAP@R above RP", words, ((i, at["RP"]), (i, at["MAP@R"])))


def _halves(table: PublishedTable) -> Iterator[Flag]:
    if not symmetric(table):
        return
    cells = [row.cells for row in table.rows]
    for i, row in enumerate(table.rows):
        for j in range(i + 1, len(cells)):
            here, there = cells[i][j], cells[j][i]
            if here is not None and there is not None and here != there:
                words = f"{row.method} and {table.rows[j].method}: {here} in one half, {there} in the other"
                yield Flag("not symmetric", words, ((i, j), (j, i)))
    copied = tuple(
        (i, j) for i, row in enumerate(cells) for j, cell in enumerate(row) if cell is None and cells[j][i] is not None
    )
    if copied:
        yield Flag("transposed", f"{len(copied)} cells are read from the other half", copied)


def _unreadable(table: PublishedTable) -> Iterator[Flag]:
    filled = transposed(table)
    lost = tuple(
        (i, j)
        for i, row in enumerate(filled.rows)
        for j, cell in enumerate(row.cells)
        if cell is None and not (symmetric(table) and i == j)
    )
    if lost:
        yield Flag("unreadable", f"{len(lost)} cells have no value that can be read", lost)


def _repeated(tables: Tables) -> Iterator[tuple[str, Flag]]:
    """Tables that hold all of another table's rows, number by number, and more."""
    rows = {
        name: {(row.method, *row.where.values()): row.cells for row in table.rows} for name, table in tables.items()
    }
    for name, table in tables.items():
        for other, small in tables.items():
            same = small.columns == table.columns and rows[other].items() < rows[name].items()
            if same and len(rows[other]) > 1:
                yield name, Flag("repeated", f"{len(rows[other])} rows repeat {other} exactly")


def _tournament(tables: Tables) -> Iterator[tuple[str, Flag]]:
    printed = tables.get("thesis_t11")
    if printed is None:
        return
    computed = {method: over_ranks(r) for method, r in ranks_of(experiments(tables, printed.dataset[0])).items()}
    for i, row in enumerate(printed.rows):
        for j, column in enumerate(printed.columns):
            cell, value = row.cells[j], computed[row.method][column.name]
            if isinstance(cell, Cell) and abs(cell.mean - value) > ROUNDING:
                words = f"{row.method}: {column} is printed {cell.mean:g}; tables 6 to 8 give {value:.2f}"
                yield printed.id, Flag("misprint", words, ((i, j),))


def ranks_of(tables: Sequence[PublishedTable]) -> dict[str, list[float]]:
    """Method -> its rank by Recall@1 in each table; equal ones share the mean of their ranks. As
    `statistics.ranks.tournament` has it, without numpy: `nearkin published` should be there at once."""
    ranks: dict[str, list[float]] = {method: [] for method in tables[0].methods}
    for table in tables:
        scores = {method: score for method in table.methods if (score := table.value(method, "R@1")) is not None}
        for method, score in scores.items():
            above = sum(other > score for other in scores.values())
            ranks[method].append(above + (1 + list(scores.values()).count(score)) / 2)
    return ranks


def over_ranks(ranks: Sequence[float]) -> dict[str, float]:
    """What a tournament says of the ranks of a method."""
    return {"total": sum(ranks), "average": fmean(ranks), "std": stdev(ranks)}


def _folds(tables: Tables) -> Iterator[tuple[str, Flag]]:
    """The mean over ten folds against the folds themselves."""
    if not {"thesis_t12", "thesis_t13"} <= tables.keys():
        return
    printed, folds = tables["thesis_t12"], tables["thesis_t13"]
    place = printed.row(folds.rows[0].method)
    cell = printed.rows[place].cells[0]
    mean, std = over_folds(folds)
    if isinstance(cell, Cell) and (abs(cell.mean - mean) > ROUNDING or abs((cell.spread or 0) - std) > ROUNDING):
        yield printed.id, Flag("misprint", f"{cell} is printed; table 13 gives {mean:.2f} ± {std:.2f}", ((place, 0),))


def over_folds(folds: PublishedTable) -> tuple[float, float]:
    """Mean and sample standard deviation of `test R@1` over the rows of a table of folds."""
    values = [c.mean for row in folds.rows if isinstance(c := row.cells[folds.find("test R@1")], Cell)]
    return fmean(values), stdev(values)


def _counts(tables: Tables) -> Iterator[tuple[str, Flag]]:
    """The thesis's counts of the data sets, against each other and against the official ones, which HIST prints."""
    if not {"thesis_s3", "hist_t1"} <= tables.keys():
        return
    counted, official = tables["thesis_s3"], tables["hist_t1"]
    halves = [counted.find(f"{half} classes") for half in ("training", "test")]
    for i, row in enumerate(counted.rows):
        images, classes, *both = (
            row.cells[counted.find("images")],
            row.cells[counted.find("classes")],
            *(row.cells[j] for j in halves),
        )
        first, second = (official.value(row.method, f"{half} images") or 0 for half in ("training", "test"))
        if isinstance(images, Cell) and images.mean != first + second:
            words = f"{row.method}, {row.where['where']}: {images.mean:,.0f} images; there are {first + second:,.0f}"
            yield counted.id, Flag("misprint", words, ((i, counted.find("images")),))
        parts = [cell.mean for cell in both if isinstance(cell, Cell)]
        if isinstance(classes, Cell) and len(parts) == 2 and sum(parts) != classes.mean:
            right = [official.value(row.method, f"{half} classes") for half in ("training", "test")]
            words = (
                f"{row.method}, {row.where['where']}: {parts[0]:g} + {parts[1]:g} classes are not {classes.mean:g}; "
                f"the halves have {right[0]:g} and {right[1]:g}"
            )
            yield counted.id, Flag("misprint", words, tuple((i, j) for j in halves))


def _absent(tables: Tables) -> Iterator[tuple[str, Flag]]:
    """Networks that the thesis has settings for on a data set, and its section 4.1.5 announces, without any table of
    their results."""
    if "thesis_t3" not in tables:
        return
    settings = tables["thesis_t3"]
    results = [table for table in tables.values() if table.source == settings.source and table.kind == "results"]
    for i, row in enumerate(settings.rows):
        network = row.where["network"]
        if not any(row.method in table.dataset and table.backbone == network for table in results):
            words = f"{network} on {row.method}: section 4.1.5 announces its results, and no table has them"
            yield settings.id, Flag("no such table", words, tuple((i, j) for j in range(len(settings.columns))))
