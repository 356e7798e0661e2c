"""The leaderboard: means with intervals, and the ranks that each row may have."""

from collections.abc import Sequence
from typing import Any

from nearkin.comparison.verdicts import all_pairs, ranks
from nearkin.comparison.words import first_words
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages import _differences
from nearkin.pages._base import Figure, Grid, Part, Section, Words
from nearkin.pages._material import Board, Material, kind_words
from nearkin.pages._words import called, cut_note, ends, interval_of, mean_columns, metric_column, value_words
from nearkin.present import Column, Dots, Table, sentence
from nearkin.units import COUNT, counted

# what a leaderboard can be filtered by, where it varies and is no axis of the study: heading -> setting
BESIDE = {"backbone": "model.backbone", "dim": "model.dim", "sampler": "sampler.name"}
SEARCHED = 12  # rows of a table that has a search field


def section(material: Material) -> Section:
    """One leaderboard for each data set."""
    parts = [part for board in material.boards for part in _board(material, board)]
    parts += [Words(words) for words in material.missing(material.gathered.metrics)]
    lead = "Means over seeds with their 95 % intervals, the best first; and which differences can be believed."
    return Section("leaderboard", "Leaderboard", lead, parts)


def _board(material: Material, board: Board) -> list[Part]:
    table = table_of(material, board, _others(material, board))
    grid = Grid(table, board.grid, filters=_filters(table), search=len(table) > SEARCHED, slice=board.grid)
    first: list[Part] = [Words(f"{board.where}{sentence(words)}") for words in first_words(board.comparison)]
    drawn = Figure(means_chart(material, board, f"leaderboard-chart{board.suffix}"), board.slicing())
    return [*first, grid, drawn, *_differences.parts(board), *_joined(material, board)]


def means_chart(material: Material, board: Board, name: str) -> Dots:
    """Every method's mean with its interval, the best on top."""
    metric = material.metric
    rows = [[method.name, kind_words(method), *ends(method.interval)] for method in board.methods]
    means = Table(f"means{board.suffix}", ["method", "kind", *mean_columns(metric)], rows)
    first, last = (
        f"{method.name} with {value_words(metric, ends(method.interval)[0])}"
        for method in (board.methods[0], board.methods[-1])
    )
    return Dots(
        name=name,
        title=f"{board.where}Means and 95 % intervals",
        table=means,
        x="method",
        by="kind",
        **interval_of(metric),
        alt=f"Test {called(metric)} of {counted(len(rows), 'method')} with 95 % intervals over seeds: from {first} to "
        f"{last}.",
        notes=cut_note(means.column("cut")),
    )


def table_of(material: Material, board: Board, others: Sequence[str]) -> Table:
    """One row per method: the ranks that it may have, its mean and interval, what it is, its other metrics. The mean
    stands right after the name: on a phone nothing further is seen."""
    metric, axes = material.metric, [axis for axis in material.gathered.axes if len(material.gathered.axes) > 1]
    beside = {name: key for name, key in BESIDE.items() if name not in axes and key not in axes and _varies(board, key)}
    may_be, rows = ranks(board.comparison), []
    for method in board.methods:
        labels = [_only(member.labels.get(axis) for member in method.members) for axis in axes]
        settings = [_only(member.settings.get(key) for member in method.members) for key in beside.values()]
        means = [ends(board.interval(method, other))[0] for other in others]
        rank = may_be.get(method.name, (None, None))
        what = [*labels, kind_words(method), *settings, len(method.values)]
        rows.append([*rank, method.name, *ends(method.interval), *what, *means])
    columns: list[Column | str] = [
        Column("best rank", "rank", COUNT, to="worst rank", about="the ranks that it may have"),
        Column("worst rank", unit=COUNT),
        "method",
        *mean_columns(metric),
        *axes,
        "kind",
        *beside,
        Column("seeds", unit=COUNT),
        *map(metric_column, others),
    ]
    title = board.data if len(material.boards) > 1 else f"{board.data}, test {called(metric)}"
    table = Table(f"leaderboard{board.suffix}", columns, rows, title)
    table.notes = _notes(board, table)
    return table


def _filters(table: Table) -> list[str]:
    """The columns that say what a method is, where they tell some rows from others."""
    about = table.header[table.header.index("cut") + 1 : table.header.index("seeds")]
    return [name for name in about if 1 < len({str(value) for value in table.column(name)}) < len(table)]


def _notes(board: Board, table: Table) -> list[str]:
    """Which comparisons the ranks stand on, and what must be known of the intervals."""
    notes, tested = [], max((pair.family for pair in all_pairs(board.comparison).pairs), default=0)
    if board.comparison.sign and tested:
        notes.append(
            "A rank is a range where rows cannot be told apart: at best 1 + the number of trained rows that are "
            f"distinguishably better, at worst {len(board.trained)} less those that are distinguishably worse. It "
            f"stands on {counted(tested, 'comparison')}, all pairs of trained rows."
        )
        if board.comparison.reference is not None and tested > len(board.trained) - 1:
            notes.append(
                "The table of differences makes fewer comparisons, so that each can be less clear: rows that it tells "
                "apart may share a rank."
            )
    if None in table.column("low"):
        notes.append("With one seed there is no interval: nothing is known of what another seed would give.")
    return notes + cut_note(table.column("cut"), " (*)")


def _joined(material: Material, board: Board) -> list[Part]:
    """Folds whose embeddings were joined, as far as their values are stored."""
    if "concatenated" not in material.gathered.evaluations:
        return []
    metric, sign = material.metric, metric_of(material.metric).sign or 1
    methods = board.by_metric(metric, evaluation="concatenated").values()
    known = [(method, method.interval) for method in methods if method.interval is not None]
    if not known:
        command = f"nearkin compare {material.gathered.name} --metric {metric} --evaluation concatenated"
        return [Words(f"{called(metric)} of joined folds is not stored; `{command}` measures it.")]
    known.sort(key=lambda row: -sign * row[1].mean)
    rows = [[method.name, *ends(interval), kind_words(method), interval.n] for method, interval in known]
    columns: list[Column | str] = ["method", *mean_columns(metric), "kind", Column("seeds", unit=COUNT)]
    table = Table(f"joined-folds{board.suffix}", columns, rows, "Embeddings of all folds joined")
    table.notes = [
        "One long vector per image, as many times the size: not to be compared with the rows above.",
        *cut_note(table.column("cut"), " (*)"),
    ]
    return [Grid(table, slice=board.grid)]


def _others(material: Material, board: Board) -> list[str]:
    """The study's other metrics, as far as every run has them."""
    asked = material.gathered.metrics or ("recall@1", "r_precision", "map_at_r")
    stored = [metric for metric in asked if metric != material.metric and not material.missing([metric])]
    return [metric for metric in stored if any(board.interval(method, metric) for method in board.methods)]


def _varies(board: Board, key: str) -> bool:
    return len({str(member.settings.get(key)) for method in board.trained for member in method.members}) > 1


def _only(values: Any) -> Any:
    """The one value, or all of them."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else ", ".join(map(str, distinct))
