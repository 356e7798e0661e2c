"""Methods side by side: their values by seed, after folds and settings, on equal terms."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nearkin.comparison._notes import notes_of
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import Method
from nearkin.comparison.rows import beside, methods_of, with_all_folds
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import EPOCH, OF_RUNS, metric_of, parse
from nearkin.progress import track
from nearkin.registry import METRICS
from nearkin.runs.test import test
from nearkin.statistics.unit import Nothing, common
from nearkin.studies.joined import joined_metrics
from nearkin.studies.readings import READINGS

DATA_KEYS = ("data", "dataset", "data.name", "root", "data.root")
WITHIN = 0.01  # a difference that is too small to matter: one point of a share


@dataclass(eq=False)  # verdicts remember what was judged of it
class Comparison:
    """Methods on one data set by one metric, best first, and what a reader must know of them."""

    data: str
    metric: str
    methods: list[Method]
    block_keys: tuple[str, ...]  # what tells settings beside the rows apart
    notes: list[str] = field(default_factory=list)
    reading: str = "chosen"
    within: float | None = None  # what is small enough to be called equivalent
    select: str = "map_at_r"  # what chose the epochs
    against: str = ""  # the row that all others are compared with, where one was asked for

    @property
    def sign(self) -> int:
        """Of the metric: 1 where high is better, -1 where low is, 0 where neither is."""
        return metric_of(self.metric).sign

    @property
    def trained(self) -> list[Method]:
        """Without the untrained networks."""
        return [method for method in self.methods if method.trained]

    @property
    def settings(self) -> list[tuple[str, ...]]:
        """The settings beside the rows."""
        return list(dict.fromkeys(setting for method in self.trained for setting in method.settings)) or [()]

    @cached_property
    def reference(self) -> Method | None:
        """The row that was asked for; else the trained row that validation ranks first, on what all of them have in
        common, else each by its own mean: it is chosen without the test. None without validation."""
        if self.against:
            return next(method for method in self.methods if method.name == self.against)
        rows = [method.validation for method in self.trained if method.validation is not None]
        if not rows or len(rows) < len(self.trained) or any(method.interval is None for method in self.trained):
            return None
        shared = common(rows)
        if isinstance(shared, Nothing):
            means = [statistics.fmean(row.values.values()) if row.values else float("-inf") for row in rows]
        else:
            means = shared.values.mean(axis=1).tolist()
        sign = metric_of(self.select).sign or 1
        scored = zip(means, self.trained, strict=True)
        return min(scored, key=lambda scored: (-sign * scored[0], scored[1].name))[1]  # ties by name, not by the test


def canonical_metric(metric: str) -> str:
    """The name that results have; an unknown one is an error."""
    if metric.startswith(OF_RUNS):
        name = metric.removeprefix(EPOCH).removeprefix("validation ").removeprefix("train.").partition("@")[0]
        if name not in METRICS:
            raise NearkinError(f"metric={metric}: {choices(name, METRICS.names())}")
        return metric
    parsed = parse(metric)
    if not parsed:
        raise NearkinError(f"metric={metric}: which k? For example {metric}@1")
    return parsed[0].key


def compare(
    gathered: Gathered,
    *,
    by: Sequence[str] | None = None,
    metric: str = "map_at_r",
    reading: str = "chosen",
    evaluation: str = "separated",
    within: float | None = None,
    against: str = "",
) -> list[Comparison]:
    """One comparison for each data set, from what is stored: no test labels are opened.

    Parameters:
        gathered: the stored runs.
        by: what rows are: axes of the study or settings; None: all axes, or the loss. Runs of several data sets need
            `data` among them: values on different images are never averaged or subtracted.
        metric: a test metric, train.*, `validation ...` or `epoch of best ...`.
        reading: which epoch (studies/readings.py).
        evaluation: of folds: separated, or concatenated.
        within: a difference that is small enough to be called equivalent; None: one point of a share.
        against: the row that all others are compared with; by default the one that validation ranks first.
    """
    metric = canonical_metric(metric)
    if reading not in READINGS:
        raise NearkinError(f"reading={reading}: {choices(reading, READINGS)}")
    if not gathered.tested:
        raise gathered.nothing_tested()
    by, sets = tuple(by or gathered.rows_by), gathered.by_data
    if len(sets) > 1 and not any(key in DATA_KEYS for key in by):
        names = [f"{name} ({len(sets[data])} runs)" for data, name in gathered.data_names.items()]
        raise NearkinError(
            f"the runs are of {len(sets)} data sets, {' and '.join(names)}, whose values cannot be compared: "
            f"by={','.join(['data', *by])} compares within each"
        )
    by = tuple(key for key in by if key not in DATA_KEYS) or ("loss",)
    if within is None and metric_of(metric).is_share:
        within = WITHIN
    compared = []
    for data_hash, members in sets.items():
        rows = methods_of(gathered, members, by, metric, reading=reading, evaluation=evaluation)
        methods = [method for method in rows if method.values]
        if not methods:
            raise NearkinError(f"metric={metric}: none of the {len(members)} runs has it")
        data, keys = gathered.data_names[data_hash], beside(gathered, members, by)
        comparison = Comparison(data, metric, best_first(methods, metric), keys, [], reading, within, gathered.select)
        comparison.notes += notes_of(gathered, comparison)
        if evaluation == "separated":
            empty = [method.name for method in rows if not method.values]
            comparison.notes += [f"{name}: no value of {metric} is stored for this reading" for name in empty]
        names = [method.name for method in methods]
        if against and against not in names:
            raise NearkinError(f"against={against}: no such row on {data}; {choices(against, names)}")
        comparison.against = against
        compared.append(comparison)
    return compared


def best_first(methods: Sequence[Method], metric: str) -> list[Method]:
    """Methods sorted by their mean."""
    sign = metric_of(metric).sign or 1
    return sorted(methods, key=lambda method: -sign * method.interval.mean if method.interval else 0.0)


def measure_missing(gathered: Gathered, metric: str, evaluation: str = "separated") -> None:
    """Compute a test metric for the runs, or for the joined folds, that lack it, from their stored embeddings; this
    opens test labels."""
    metric = canonical_metric(metric)
    if evaluation == "concatenated":
        groups = with_all_folds(member for member in gathered.tested if member.baseline is None)
        for group in track(groups, f"Testing {metric} of joined folds", len(groups)):
            joined_metrics([member.run for member in group], [metric], gathered.joined)
        return
    for member in track(lacking := [m for m in gathered.tested if lacks(m, metric)], f"Testing {metric}", len(lacking)):
        test(member.run, metrics=[metric])


def lacks(member: Member, metric: str) -> bool:
    """Is a test metric not stored for a tested run, or not for every epoch of its test curve?"""
    if metric.startswith(OF_RUNS):
        return False
    curve = member.run.read_json("curve.json")["epochs"] if (member.run.path / "curve.json").exists() else []
    return metric not in member.run.metrics() or any(metric not in point["metrics"] for point in curve[:1])
