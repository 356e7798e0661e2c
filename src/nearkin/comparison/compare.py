"""Methods side by side: their values by seed, after folds, on equal terms."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearkin.comparison.gather import Gathered, Member, label_of
from nearkin.comparison.method import Block, Method, kind_of
from nearkin.comparison.notes import notes_of
from nearkin.errors import NearkinError, choices, some
from nearkin.evaluation.metrics.base import parse
from nearkin.progress import track
from nearkin.registry import METRICS
from nearkin.runs.test import test
from nearkin.studies.baselines import ANY
from nearkin.studies.joined import joined_metrics
from nearkin.studies.readings import READINGS

NETWORK = ("model.backbone", "model.dim")       # what tells experiments of single runs apart


@dataclass
class Comparison:
    """Methods on one data set by one metric, best first, and what a reader must know of them."""

    data: str
    metric: str
    methods: list[Method]
    blocks: list[Block]
    block_keys: tuple[str, ...]
    notes: list[str]
    reading: str = "chosen"

    @property
    def better(self) -> str:
        """high or low: which end of the metric is the good one; high where neither is."""
        return METRICS[bare(self.metric)].better or "high"

    @property
    def trained(self) -> list[Method]:
        """Without the untrained networks."""
        return [method for method in self.methods if method.kind != "untrained"]


def bare(metric: str) -> str:
    """The metric's name in the registry: of `train.rho`, `validation map_at_r` and `recall@1`."""
    return metric.removeprefix("validation ").removeprefix("train.").partition("@")[0]


def canonical_metric(metric: str) -> str:
    """The name that results have; an unknown one is an error."""
    if metric.startswith(("train.", "validation ")):
        if bare(metric) not in METRICS:
            raise NearkinError(f"--metric {metric}: {choices(bare(metric), METRICS.names())}")
        return metric
    found = parse(metric)
    if not found:
        raise NearkinError(f"--metric {metric}: which k? For example {metric}@1")
    return found[0].key


def compare(
    gathered: Gathered, *, by: Sequence[str] | None = None, metric: str = "map_at_r", reading: str = "chosen",
    evaluation: str = "separated",
) -> list[Comparison]:  # fmt: skip
    """One comparison for each data set.

    Parameters:
        gathered: the stored runs.
        by: what rows are: axes of the study or settings; None: all axes, or the loss. Runs of several data sets need
            `data` among them: values on different images are never averaged or subtracted.
        metric: a test metric, train.* or `validation ...`. One that is not stored is computed from stored embeddings.
        reading: which epoch (studies/readings.py).
        evaluation: of folds: separated, or concatenated.
    """
    metric = canonical_metric(metric)
    if reading not in READINGS:
        raise NearkinError(f"--reading {reading}: {choices(reading, READINGS)}")
    if not gathered.tested:
        raise NearkinError(f"{gathered.name}: none of its {len(gathered.members)} runs is tested; nothing to compare")
    keys = tuple(by) if by else gathered.axes or ("loss",)
    ensure_metric(gathered, metric)
    sets: dict[str, list[Member]] = {}
    for member in gathered.tested:
        sets.setdefault(member.head["data_hash"], []).append(member)
    split_by_data = any(key in ("data", "dataset", "data.name", "root", "data.root") for key in keys)
    own = [key for key in keys if key not in ("data", "dataset", "data.name", "root", "data.root")] or ["loss"]
    if len(sets) > 1 and not split_by_data:
        names = [f"{members[0].settings['data.name']} ({len(members)} runs)" for members in sets.values()]
        told = ",".join(["data", *keys])
        raise NearkinError(
            f"the runs are of {len(sets)} data sets, {' and '.join(names)}, whose values cannot be compared: "
            f"--by {told} compares within each"
        )
    return [_one(gathered, members, tuple(own), metric, reading, evaluation) for members in sets.values()]


def ensure_metric(gathered: Gathered, metric: str) -> None:
    """Compute a test metric for the runs that lack it, from their stored embeddings."""
    if metric.startswith(("train.", "validation ")):
        return
    lacking = [m for m in gathered.tested if metric not in m.run.metrics()]
    lacking += [m for m in gathered.tested if m not in lacking and (m.run.path / "curve.json").exists()
                and metric not in m.run.read_json("curve.json")["epochs"][0]["metrics"]]  # fmt: skip
    for member in track(lacking, f"Testing {metric}", len(lacking)):
        test(member.run, metrics=[metric])


def _one(
    gathered: Gathered, members: list[Member], by: tuple[str, ...], metric: str, reading: str, evaluation: str
) -> Comparison:
    beside = tuple(axis for axis in gathered.axes if axis not in by) if gathered.axes else tuple(
        key for key in NETWORK if key not in by and key.removeprefix("model.") not in by
        and len({str(m.settings[key]) for m in members if m.baseline is None}) > 1)  # fmt: skip
    notes: list[str] = []
    methods = []
    for name in dict.fromkeys(_name(member, by) for member in members):
        mine = [member for member in members if _name(member, by) == name]
        blocks: dict[Block, list[Member]] = {}
        for member in mine:
            blocks.setdefault(tuple(label_of(member, key) for key in beside), []).append(member)
        values = {block: _by_seed(gathered, own, metric, reading, evaluation) for block, own in blocks.items()}
        values = {block: own for block, own in values.items() if own}
        if values:
            methods.append(Method(name, kind_of(mine[0]), values, mine))
        elif evaluation == "separated":
            notes.append(f"{name}: no value of {metric} is stored for this reading")
    if not methods:
        raise NearkinError(f"--metric {metric}: none of the {len(members)} runs has it")
    blocks_all = list(dict.fromkeys(b for m in methods if m.kind != "untrained" for b in m.blocks)) or [()]
    _spread_untrained(methods, blocks_all)
    notes += notes_of(gathered, methods, blocks_all, beside, reading)
    sign = 1 if METRICS[bare(metric)].better == "low" else -1
    methods.sort(key=lambda m: sign * m.interval.mean if m.interval else np.inf)
    return Comparison(members[0].settings["data.name"], metric, methods, blocks_all, beside, notes, reading)


def _name(member: Member, by: tuple[str, ...]) -> str:
    words = [label_of(member, key) for key in by]
    return ", ".join(word for word in words if word != ANY) or ANY


def _by_seed(
    gathered: Gathered, members: list[Member], metric: str, reading: str, evaluation: str
) -> dict[int, float]:
    """Seed -> the mean over its folds. A seed counts when all folds that other seeds have are there."""
    folds = {member.fold for member in members}
    found: dict[int, float] = {}
    for seed in dict.fromkeys(member.seed for member in members):
        own = [member for member in members if member.seed == seed]
        if len(own) != len({member.fold for member in own}):
            first, second = own[:2]
            differ = sorted(k for k in first.settings if first.settings[k] != second.settings.get(k))
            raise NearkinError(
                f"runs {first.run.hash} and {second.run.hash} would be one row with seed {seed}: add to --by what "
                f"tells them apart ({some(differ, 6) or 'nothing differs'})"
            )
        if {member.fold for member in own} != folds:
            continue
        if evaluation == "concatenated":
            if len(own) > 1:
                found[seed] = joined_metrics([m.run for m in own], [metric], gathered.joined)[metric]
            continue
        numbers = [member.numbers(reading, gathered.select).get(metric) for member in own]
        if all(value is not None for value in numbers):
            found[seed] = statistics.fmean(numbers)  # type: ignore[arg-type]
    return found


def _spread_untrained(methods: list[Method], blocks: list[Block]) -> None:
    """An untrained network that is the same whatever stands on an axis takes part in every block."""
    for method in methods:
        if method.kind != "untrained":
            continue
        spread: dict[Block, dict[int, float]] = {}
        for own, values in method.blocks.items():
            fits = [block for block in blocks if all(a in (b, ANY) for a, b in zip(own, block, strict=True))]
            spread |= dict.fromkeys(fits or blocks, values)
        method.blocks = spread
