"""The leaderboard: means with intervals, and the ranks that each row may have."""

from collections.abc import Iterable, Sequence
from typing import Any

from nearkin.comparison.verdicts import all_pairs, ranks
from nearkin.comparison.words import first_words
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages import _differences
from nearkin.pages._base import Figure, Grid, Part, Section, Words
from nearkin.pages._board import Board, by_board
from nearkin.pages._members import kind_words, missing
from nearkin.pages._slicing import Slicing
from nearkin.pages._words import called, cut_note, ends, mean_columns, means_figure, metric_column, value_words
from nearkin.present import Column, Dots, Table, sentence
from nearkin.units import COUNT, counted

# what a leaderboard can be filtered by, where it varies and is no axis of the study: heading -> setting
BESIDE = {"backbone": "model.backbone", "dim": "model.dim", "sampler": "sampler.name"}
SEARCHED = 12  # rows of a table that has a search field


def section(boards: list[Board]) -> Section:
    """One leaderboard for each data set."""
    lead = "Means over seeds with their 95 % intervals, the best first; and which differences can be believed."
    leaderboard = by_board(boards, "leaderboard", "Leaderboard", lead, _board, _differences.parts, _joined)
    assert leaderboard is not None
    leaderboard.parts += [Words(words) for words in missing(boards[0].gathered, boards[0].gathered.metrics)]
    return leaderboard


def _board(board: Board) -> list[Part]:
    table = table_of(board, _others(board))
    about = table.header[table.header.index("cut") + 1 : table.header.index("seeds")]  # what a method is
    menus = [name for name in about if 1 < len({str(value) for value in table.column(name)}) < len(table)]
    return [
        *(Words(sentence(words)) for words in first_words(board.comparison)),
        Grid(table, "leaderboard-grid", filters=menus, search=len(table) > SEARCHED, slice=board.grid),
        means_chart(board, "leaderboard-chart", "Means and 95 % intervals", board.slicing()),
    ]


def means_chart(board: Board, name: str, title: str, slicing: Slicing) -> Figure:
    """Every method's mean with its interval, the best on top."""
    rows = [[method.name, kind_words(method), *ends(method.interval)] for method in board.methods]
    first, last = (f"{row[0]} with {value_words(board.metric, row[2])}" for row in (rows[0], rows[-1]))
    alt = f"Test {called(board.metric)} of {counted(len(rows), 'method')} with 95 % intervals over seeds: from {first} "
    table = Table("means", ["method", "kind", *mean_columns(board.metric)], rows)
    looks = {"name": name, "title": title, "x": "method", "by": "kind", "alt": f"{alt}to {last}."}
    return means_figure(Dots, table, board.metric, slicing, **looks)


def table_of(board: Board, others: Sequence[str]) -> Table:
    """One row per method: the ranks that it may have, its mean and interval, what it is, its other metrics. The mean
    stands right after the name: on a phone nothing further is seen."""
    metric, axes = board.metric, [axis for axis in board.gathered.axes if len(board.gathered.axes) > 1]
    beside = {name: key for name, key in BESIDE.items() if name not in axes and key not in axes and _varies(board, key)}
    may_be, rows = ranks(board.comparison), []
    for method in board.methods:
        labels = [_only_value(member.labels.get(axis) for member in method.members) for axis in axes]
        settings = [_only_value(member.settings.get(key) for member in method.members) for key in beside.values()]
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
    title = f"Test {called(metric)}" if board.suffix else f"{board.data}, test {called(metric)}"
    table = Table("leaderboard", columns, rows, title, _rank_notes(board))
    if None in table.column("low"):
        table.notes.append("With one seed there is no interval: nothing is known of what another seed would give.")
    table.notes += cut_note(table, " (*)")
    return table


def _rank_notes(board: Board) -> list[str]:
    """Which comparisons the ranks stand on."""
    tested = max((pair.family for pair in all_pairs(board.comparison).pairs), default=0)
    if not board.comparison.sign or not tested:
        return []
    notes = [
        "A rank is a range where rows cannot be told apart: at best 1 + the number of trained rows that are "
        f"distinguishably better, at worst {len(board.trained)} less those that are distinguishably worse. It "
        f"stands on {counted(tested, 'comparison')}, all pairs of trained rows."
    ]
    if board.comparison.reference is not None and tested > len(board.trained) - 1:
        notes.append(
            "The table of differences makes fewer comparisons, so that each can be less clear: rows that it tells "
            "apart may share a rank."
        )
    return notes


def _others(board: Board) -> list[str]:
    """The study's other metrics, as far as every run has them."""
    wanted = board.gathered.metrics or ("recall@1", "r_precision", "map_at_r")
    stored = [metric for metric in wanted if metric != board.metric and not missing(board.gathered, [metric])]
    return [metric for metric in stored if any(board.interval(method, metric) for method in board.methods)]


def _varies(board: Board, key: str) -> bool:
    return len({str(member.settings.get(key)) for method in board.trained for member in method.members}) > 1


def _only_value(values: Iterable[Any]) -> Any:
    """The one value that all have; else all of them, in words."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else ", ".join(map(str, distinct))


def _joined(board: Board) -> list[Part]:
    """Folds whose embeddings were joined, as far as their values are stored."""
    if "concatenated" not in board.gathered.evaluations:
        return []
    metric, sign = board.metric, metric_of(board.metric).sign or 1
    methods = [row for row in board.by_metric(metric, evaluation="concatenated").values() if row.interval is not None]
    if not methods:
        command = f"nearkin compare {board.gathered.name} --metric {metric} --evaluation concatenated"
        return [Words(f"{called(metric)} of joined folds is not stored; `{command}` measures it.")]
    rows = [[row.name, *ends(row.interval), kind_words(row), len(row.values)] for row in methods]
    rows.sort(key=lambda row: -sign * row[1])
    columns: list[Column | str] = ["method", *mean_columns(metric), "kind", Column("seeds", unit=COUNT)]
    table = Table("joined-folds", columns, rows, "Embeddings of all folds joined")
    longer = "One long vector per image, as many times the size: not to be compared with the rows above."
    table.notes = [longer, *cut_note(table, " (*)")]
    return [Grid(table, slice=board.grid)]
