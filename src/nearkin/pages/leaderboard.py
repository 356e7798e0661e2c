"""The leaderboard: means with intervals, and the ranks that each row may have."""

from collections.abc import Mapping, Sequence
from typing import Any

from nearkin.comparison.method import Method
from nearkin.comparison.pages import first_words, rank_words, sentence
from nearkin.comparison.verdicts import all_pairs, ranks
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages import differences
from nearkin.pages.base import Chart, Column, Grid, Part, Section, Table, Words
from nearkin.pages.material import Board, Material
from nearkin.pages.words import ENDS, called, cut_note, ends, interval_column, interval_of, metric_column, shown_metric

# what a leaderboard can be filtered by, where it varies: heading -> setting
BESIDE = {"backbone": "model.backbone", "size": "model.dim", "sampler": "sampler.name"}


def section(material: Material) -> Section:
    """One leaderboard for each data set."""
    parts = [part for board in material.boards for part in _board(material, board)]
    parts += [Words(words) for words in material.missing(material.gathered.metrics)]
    lead = (
        "Mean over seeds with its 95 % interval, best first; the ranks that a row may have; and which differences "
        "can be believed."
    )
    return Section("leaderboard", "Leaderboard", lead, parts)


def _board(material: Material, board: Board) -> list[Part]:
    metric, others = material.metric, _others(material, board)
    table = table_of(material, board, others)
    means = Table(
        f"means{board.suffix}",
        ["method", "kind", metric, *ENDS],
        [[row[name] for name in ("method", "kind", metric, *ENDS)] for row in table.records()],
    )
    chart = Chart(
        f"leaderboard-chart{board.suffix}",
        "Means and 95 % intervals",
        means,
        form="dots",
        x="method",
        by="kind",
        **interval_of(metric),
        sideways=True,
        alt=_alt(board, metric),
        notes=cut_note(means.column("cut")),
    )
    first: list[Part] = [Words(f"{board.where}{sentence(words)}") for words in first_words(board.comparison)]
    return [*first, _grid(material, board, table, others), chart, *differences.parts(board), *_joined(material, board)]


def table_of(material: Material, board: Board, others: Sequence[str]) -> Table:
    """One row per method: what it is, the ranks that it may have, its mean and interval, its other metrics."""
    beside = {name: key for name, key in BESIDE.items() if _varies(board, key)}
    axes = [axis for axis in material.gathered.axes if len(material.gathered.axes) > 1]
    may_be, rows = ranks(board.comparison), []
    for method in board.methods:
        labels = [_only(member.labels.get(axis) for member in method.members) for axis in axes]
        settings = [_only(member.settings.get(key) for member in method.members) for key in beside.values()]
        rows.append(
            [
                *may_be.get(method.name, (None, None)),
                board.data,
                method.name,
                *labels,
                method.kind,
                *settings,
                len(method.values),
                *ends(method.interval),
                *(ends(board.interval(method, other))[0] for other in others),
            ]
        )
    header = ["best rank", "worst rank", "data", "method", *axes, "kind", *beside, "seeds", material.metric, *ENDS]
    return Table(f"leaderboard{board.suffix}", [*header, *others], rows)


def _grid(material: Material, board: Board, table: Table, others: Sequence[str]) -> Grid:
    metric = material.metric
    before = table.header[table.header.index("method") : table.header.index(metric)]
    columns = [
        Column("best rank", "rank", _rank, "the ranks that it may have"),
        *map(Column, before),
        metric_column(metric),
        interval_column(metric),
        *map(metric_column, others),
    ]
    filters = [
        name
        for name in before
        if name not in ("method", "seeds") and 1 < len({str(value) for value in table.column(name)}) < len(table.rows)
    ]
    title = board.data if len(material.boards) > 1 else f"{board.data}, test {called(metric)}"
    return Grid(
        f"leaderboard-grid{board.suffix}",
        title,
        table,
        columns=columns,
        filters=filters,
        search=len(table.rows) > 12,
        notes=_notes(board, table),
    )


def _notes(board: Board, table: Table) -> list[str]:
    """Which comparisons the ranks stand on, and what must be known of the intervals."""
    notes, tested = [], max((pair.family for pair in all_pairs(board.comparison).pairs), default=0)
    if board.comparison.sign and tested:
        notes.append(
            "Ranks go from 1 + the trained rows that are distinguishably better to "
            f"{len(board.trained)} less those that are distinguishably worse: one family of {tested} "
            f"comparison{'s' * (tested > 1)}, all pairs of trained rows."
        )
        if board.comparison.reference is not None and tested > len(board.trained) - 1:
            notes.append(
                "These are more comparisons than the table of differences has, and each must be clearer: rows "
                "that it tells apart may share a rank."
            )
    if any(row["low"] is None for row in table.records()):
        notes.append("With one seed there is no interval: nothing is known of what another seed would give.")
    return notes + cut_note(table.column("cut"), " (*)")


def _rank(row: Mapping[str, Any]) -> str:
    return rank_words(None if row["best rank"] is None else (row["best rank"], row["worst rank"]))


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
    rows = [[method.name, method.kind, interval.n, *ends(interval)] for method, interval in known]
    table = Table(f"joined-folds{board.suffix}", ["method", "kind", "seeds", metric, *ENDS], rows)
    columns = [*map(Column, table.header[:3]), metric_column(metric), interval_column(metric)]
    notes = [
        "One long vector per image, as many times the size: not to be compared with the rows above.",
        *cut_note(table.column("cut"), " (*)"),
    ]
    return [Grid(f"joined-folds{board.suffix}", "Embeddings of all folds joined", table, columns=columns, notes=notes)]


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


def _alt(board: Board, metric: str) -> str:
    def words(method: Method) -> str:
        return f"{method.name} with {shown_metric(metric, ends(method.interval)[0])}"

    first, last = words(board.methods[0]), words(board.methods[-1])
    return f"{called(metric)} of {len(board.methods)} methods with 95 % intervals over seeds: from {first} to {last}."
