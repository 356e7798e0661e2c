"""How numbers of methods hang together: rank correlations over methods, and methods with a regulariser against the same
without.

Do numbers of the embedding space go with the test? The unit is the method, with one value on either side: its mean over
the seeds and folds that all methods have. All correlations are one family; no verdict below three seeds, nor with fewer
methods than could reject anything after Holm's correction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nearkin.analysis._over_runs import OneMethod, interval_columns
from nearkin.comparison.alike import NONE, alike, regulariser
from nearkin.comparison.compare import WITHIN
from nearkin.comparison.gather import Member
from nearkin.comparison.verdicts import FEW, verdict_words
from nearkin.config.parse import flatten
from nearkin.evaluation.metrics.base import metric_of
from nearkin.present import Column, Table
from nearkin.statistics.correlation import least_methods, rank_correlation
from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.paired import holm
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Row, common
from nearkin.statistics.verdict import Pair, judge
from nearkin.units import COUNT, NUMBER, POINTS, P, counted

LEAST = 3  # methods: two always correlate


def correlations(wanted: Mapping[tuple[str, str], Sequence[tuple[Row, Row]]]) -> dict[str, dict[str, Any]]:
    """What is correlated -> with what -> the correlation, its p value after Holm's correction, and a verdict.

    Parameters:
        wanted: which two numbers -> the two rows of every method; methods that lack one of them do not count, and what
            fewer than 3 methods have is left out.
    """
    whole = {names: [pair for pair in rows if all(row.members for row in pair)] for names, rows in wanted.items()}
    cells = {names: correlation(rows) for names, rows in whole.items() if len(rows) >= LEAST}
    needed = least_methods(len(cells))
    tested = [
        cell
        for cell in cells.values()
        if cell["p"] is not None and cell["seeds"] >= LEAST_SEEDS and cell["methods"] >= needed
    ]
    for cell, p in zip(tested, holm([cell["p"] for cell in tested]).tolist(), strict=True):
        cell["p_holm"] = p
    by_name: dict[str, dict[str, Any]] = {}
    for (first, second), cell in cells.items():
        by_name.setdefault(first, {})[second] = cell | {"family": len(tested), "verdict": _verdict(cell, needed)}
    return by_name


def correlation(rows: Sequence[tuple[Row, Row]]) -> dict[str, Any]:
    """Spearman's correlation over methods of their means on the seeds and folds that all of them have."""
    shared = common([row for pair in rows for row in pair])
    cell: dict[str, Any] = {"spearman": None, "p": None, "p_holm": None, "methods": len(rows), "seeds": 0, "why": None}
    if isinstance(shared, Nothing):
        return cell | {"why": shared.reason}
    means = shared.values.mean(axis=1)  # (2M,)
    value = rank_correlation(means[::2], means[1::2])
    if value is None:
        return cell | {"seeds": len(shared.seeds), "why": "one of the two is the same for all methods"}
    return cell | {"spearman": value.value, "p": value.p, "seeds": len(shared.seeds)}


def _verdict(cell: Mapping[str, Any], needed: int) -> str:
    if cell["why"]:
        return cell["why"]
    if cell["seeds"] < LEAST_SEEDS:
        return f"no verdict: {counted(cell['seeds'], 'common seed')}, {FEW}"
    if cell["methods"] < needed:
        return f"no verdict: {cell['methods']} methods, at least {needed} are needed"
    if cell["p_holm"] >= ALPHA:
        return "undecided"
    return "rises with it" if cell["spearman"] > 0 else "falls with it"


def correlation_table(correlated: Mapping[str, Mapping[str, Any]]) -> Table:
    """The table of the family."""
    records = [{"of": of, "with": other, **cell} for of, others in correlated.items() for other, cell in others.items()]
    columns = [
        *("of", "with", "verdict"),
        Column("methods", unit=COUNT),
        Column("seeds", unit=COUNT),
        Column("spearman", "Spearman", NUMBER),
        Column("p_holm", "p (Holm)", P),
    ]
    notes = [
        "Spearman's correlation over the trained methods of this table, no random sample of methods; a method counts "
        "once, by its mean over the seeds and folds that all methods have"
    ]
    if family := records[0]["family"]:
        notes.append(
            f"one family of {counted(family, 'test')}: p is that of the permutation test over methods, after Holm's "
            "correction"
        )
    return Table.of_records("correlations", columns, records, title="With the test", notes=notes)


@dataclass(frozen=True)
class Twins:
    """A method with and without regularisers, alike otherwise.

    Parameters:
        name: what the study calls it.
        plain: its runs without one.
        acting: its runs with one, by the names of their methods.
    """

    name: str
    plain: OneMethod
    acting: list[OneMethod]


def twins_of(methods: Sequence[OneMethod]) -> list[Twins]:
    """The trained methods that are there with a regulariser and without."""
    names = {id(member): method.name for method in methods for member in method.members}
    trained = [member for method in methods if method.trained for member in method.members]
    twins = []
    for name, group in alike(trained, _switches, _settings).items():
        plain: dict[tuple[int, int | None], Member] = {}  # seed, fold -> a run
        acting: dict[str, list[Member]] = {}
        for member in group:
            if regulariser(member) == NONE:
                plain.setdefault((member.seed, member.fold), member)
            else:
                acting.setdefault(names[id(member)], []).append(member)
        if plain and acting:
            without = OneMethod(names[id(next(iter(plain.values())))], "", tuple(plain.values()))
            twins.append(Twins(name, without, [OneMethod(n, "", tuple(members)) for n, members in acting.items()]))
    return twins


def _switches(key: str) -> bool:
    """Is it a setting of the regulariser?"""
    return key.partition(".")[0] == "regulariser"


def _settings(member: Member) -> Mapping[str, Any]:
    """As this version reads them: a run that was stored before a setting existed has its default."""
    return flatten(member.run.spec.whole())


@dataclass(frozen=True)
class Regularised:
    """A method with a regulariser against its twin without, by several metrics."""

    loss: str
    regulariser: str
    pairs: dict[str, Pair]  # metric -> with less without

    def numbers(self) -> dict[str, Any]:
        """As JSON has it."""
        first = next(iter(self.pairs.values()))
        about = {"method": first.first.name, "against": first.second.name}
        about |= {"loss": self.loss, "regulariser": self.regulariser}
        return about | {metric: _numbers(pair, metric) for metric, pair in self.pairs.items()}


def regularised(
    twins: Sequence[Twins], metrics: Sequence[str], row: Callable[[OneMethod, str], Row]
) -> list[Regularised]:
    """All methods with a regulariser against the same without. All pairs are one family: those by one metric are
    judged together, as in any comparison, and their p values multiplied by the number of metrics.

    Parameters:
        twins: methods with and without.
        metrics: by which they are compared.
        row: the values of a method by a metric.
    """
    judged = []
    for metric in metrics:
        traits = metric_of(metric)
        sides = [(row(acting, metric), row(one.plain, metric)) for one in twins for acting in one.acting]
        pairs = judge(sides, sign=traits.sign, within=WITHIN if traits.is_share else None)
        judged.append([_among(pair, len(metrics)) for pair in pairs])
    runs = [acting.members[0] for one in twins for acting in one.acting]
    return [
        Regularised(str(run.settings["loss.name"]), regulariser(run), dict(zip(metrics, pairs, strict=True)))
        for run, pairs in zip(runs, zip(*judged, strict=True), strict=True)
    ]


def _among(pair: Pair, metrics: int) -> Pair:
    """A pair of the family of all metrics."""
    return replace(pair, p=None if pair.p is None else min(1.0, metrics * pair.p), family=metrics * pair.family)


def _numbers(pair: Pair, metric: str) -> dict[str, Any]:
    d = pair.difference
    mean, low, high, n = (None, None, None, 0) if d is None else (d.mean, d.low, d.high, d.n)
    judged = {"p_holm": pair.p, "family": pair.family, "outcome": str(pair.outcome)}
    return {"mean": mean, "low": low, "high": high, "n": n, **judged, "verdict": verdict_words(pair, metric)}


def regulariser_table(compared: Sequence[Regularised]) -> Table:
    """One row per method and metric: with the regulariser less without."""
    columns = [
        *("method", "by", "unit", "verdict"),
        Column("seeds", unit=COUNT),
        Column("difference", unit="unit", signed=True),
        *interval_columns("unit", signed=True),
        Column("p_holm", "p (Holm)", P),
    ]
    records = []
    for method in compared:
        for metric, pair in method.pairs.items():
            share, cell = metric_of(metric).is_share, _numbers(pair, metric)
            by, unit = (f"{metric}, points", POINTS.name) if share else (metric, NUMBER.name)
            about = {"method": pair.first.name, "by": by, "unit": unit}
            records.append({**cell, **about, "seeds": cell["n"] or None, "difference": cell["mean"]})
    pairs = [pair for method in compared for pair in method.pairs.values()]
    classes = any(pair.difference is not None and pair.difference.classes is not None for pair in pairs)
    over = "seeds and, where values by class are stored, test classes" if classes else "common seeds"
    notes = [f"intervals are over {over}, folds averaged first"]
    if count := max(pair.family for pair in pairs):
        notes.append(
            f"one family of {counted(count, 'comparison')}: p is that of the paired t test over common seeds, after "
            f"Holm's correction, times {len(compared[0].pairs)}, the numbers that are compared"
        )
    title = "With a regulariser minus without, same settings, seeds and folds"
    return Table.of_records("regularisers", columns, records, title=title, notes=notes)
