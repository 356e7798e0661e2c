"""Methods with a regulariser against the same methods without."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nearkin.analysis.over_runs import OneMethod
from nearkin.comparison.compare import WITHIN
from nearkin.comparison.gather import Member
from nearkin.comparison.pages import Sheet
from nearkin.comparison.verdicts import amount, span, verdict_words
from nearkin.config.parse import flatten
from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.unit import Row
from nearkin.statistics.verdict import Pair, judge

REPEATED = {"train.seed", "protocol.fold"}  # in which a run may differ from its twin
PURPOSE = ("regulariser", "purpose", "recipe")


@dataclass(frozen=True)
class Regularised:
    """A method with a regulariser against its twin without, by several metrics."""

    loss: str
    regulariser: str
    pairs: dict[str, Pair]  # metric -> with less without

    def numbers(self) -> dict[str, Any]:
        """As JSON has it."""
        first = next(iter(self.pairs.values()))
        about = {
            "method": first.first.name,
            "against": first.second.name,
            "loss": self.loss,
            "regulariser": self.regulariser,
        }
        return about | {metric: _numbers(pair, metric) for metric, pair in self.pairs.items()}


def regularised(
    methods: Sequence[OneMethod], metrics: Sequence[str], row: Callable[[OneMethod, str], Row]
) -> list[Regularised]:
    """All methods with a regulariser whose twin without is there too. All pairs are one family: those by one metric are
    judged together, as in any comparison, and their p values multiplied by the number of metrics.

    Parameters:
        methods: of a study.
        metrics: by which they are compared.
        row: the values of a method by a metric.
    """
    runs = [(method, member) for method in methods if method.trained for member in method.members]
    plain: dict[str, dict[tuple[int, int | None], tuple[str, Member]]] = {}  # twin -> seed, fold -> its run
    for method, member in runs:
        if regulariser(member) == "none":
            plain.setdefault(_twin(member), {}).setdefault((member.seed, member.fold), (method.name, member))
    acting: dict[tuple[str, str], list[Member]] = {}
    for method, member in runs:
        if regulariser(member) != "none" and _twin(member) in plain:
            acting.setdefault((_twin(member), method.name), []).append(member)
    first = {key: OneMethod(key[1], "", tuple(members)) for key, members in acting.items()}
    second = {
        twin: OneMethod(next(iter(twins.values()))[0], "", tuple(member for _, member in twins.values()))
        for twin, twins in plain.items()
    }
    judged = []
    for metric in metrics:
        traits, without = metric_of(metric), {twin: row(method, metric) for twin, method in second.items()}
        pairs = judge(
            [(row(method, metric), without[twin]) for (twin, _), method in first.items()],
            sign=traits.sign,
            within=WITHIN if traits.is_share else None,
        )
        judged.append([_among(pair, len(metrics)) for pair in pairs])
    return [
        Regularised(
            str(method.members[0].settings["loss.name"]),
            regulariser(method.members[0]),
            dict(zip(metrics, pairs, strict=True)),
        )
        for method, pairs in zip(first.values(), zip(*judged, strict=True), strict=True)
    ]


def _among(pair: Pair, metrics: int) -> Pair:
    """A pair of the family of all metrics."""
    return replace(pair, p=None if pair.p is None else min(1.0, metrics * pair.p), family=metrics * pair.family)


def regulariser(member: Member) -> str:
    """Its regulariser in words; one that never acts (p_switch=0) is none."""
    settings = member.settings
    name = settings.get("regulariser.name")
    if name is None or settings.get("regulariser.p_switch") == 0:
        return "none"
    switch = settings.get("regulariser.p_switch")
    return str(name) if switch is None else f"{name} p_switch={switch:g}"


def _twin(member: Member) -> str:
    """All settings but the regulariser, the seed, the fold and what the run is for, as this version reads them: a run
    that was stored before a setting existed has its default."""
    settings = flatten(member.run.spec.whole()).items()
    return repr(
        sorted((key, value) for key, value in settings if key not in REPEATED and key.partition(".")[0] not in PURPOSE)
    )


def _numbers(pair: Pair, metric: str) -> dict[str, Any]:
    d = pair.difference
    numbers = (
        {"mean": None, "low": None, "high": None, "n": 0}
        if d is None
        else {"mean": d.mean, "low": d.low, "high": d.high, "n": d.n}
    )
    return numbers | {
        "p_holm": pair.p,
        "family": pair.family,
        "outcome": str(pair.outcome),
        "verdict": verdict_words(pair, metric),
    }


def regulariser_sheet(compared: Sequence[Regularised]) -> Sheet:
    """One row per method and metric: with the regulariser less without."""
    rows = []
    for method in compared:
        for metric, pair in method.pairs.items():
            d, unit = pair.difference, ", points" if metric_of(metric).is_share else ""
            numbers = (
                ["–"] * 3
                if d is None
                else [str(d.n), amount(metric, d.mean, signed=True), span(metric, d.low, d.high, signed=True)]
            )
            p = "–" if pair.p is None else "< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}"
            rows.append([pair.first.name, f"{metric}{unit}", verdict_words(pair, metric), *numbers, p])
    pairs = [pair for method in compared for pair in method.pairs.values()]
    count = max(pair.family for pair in pairs)
    classes = any(pair.difference is not None and pair.difference.classes is not None for pair in pairs)
    over = "seeds and, where values by class are stored, test classes" if classes else "common seeds"
    notes = [f"intervals are over {over}, folds averaged first"]
    if count:
        notes.append(
            f"one family of {count} comparisons: p is that of the paired t test over common seeds, after "
            f"Holm's correction, times {len(compared[0].pairs)}, the numbers that are compared"
        )
    header = ["method", "by", "verdict", "seeds", "difference", "95 % interval", "p (Holm)"]
    return Sheet("With a regulariser minus without, same settings, seeds and folds", header, rows, 4, notes)
