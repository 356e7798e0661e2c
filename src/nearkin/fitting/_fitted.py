"""What `nearkin fit` says: does training help here, what is it worth, and which model is it now."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nearkin.fitting._estimate import METRICS, Over, gain, tested, worth
from nearkin.fitting._plan import LEAST_CLASSES, Plan
from nearkin.present import Column, Shown, Table
from nearkin.runs.store import Run, Store
from nearkin.runs.tested import validation_of
from nearkin.statistics.unit import ByClass
from nearkin.units import POINTS, SECONDS, SHARE, counted

WITHOUT = "without training"
HEADINGS = {"recall@1": "Recall@1", "map_at_r": "MAP@R"}
LOST = 0.005  # Recall@1 may be lower by this much where MAP@R is surely higher


@dataclass(frozen=True)
class Method:
    """One loss, and its tested run of every fold; none if it failed, with the reason.

    Parameters:
        name: of the loss.
        words: the settings that make it.
        runs: its run of every fold.
        error: why there are none.
    """

    name: str
    words: Mapping[str, Any]
    runs: Sequence[Run]
    error: str | None = None


class Fitted(Shown):
    """What came out of a fit: the estimate, the verdict and the model.

    Fields:
        run: the model, trained on all classes or untrained: for `nearkin.embed`, `nearkin.load`, `nearkin.report`.
        helps: does training help here?
        seconds: how long it took, all sessions together.

    Parameters:
        name: of its folder in the store.
        store: where the runs are.
        plan: what was planned.
        counts: classes, and those of them with two images or more.
        untrained: the untrained network's run of every fold.
        methods: what was trained.
        select: the metric that chooses.
    """

    run: Run
    seconds: float = 0.0

    def __init__(
        self,
        name: str,
        store: Store,
        plan: Plan,
        counts: tuple[int, int],
        untrained: Sequence[Run],
        methods: Sequence[Method],
        select: str,
    ):
        self.name, self.store, self.plan, (self.classes, self.searchable) = name, store, plan, counts
        self.untrained, self.methods, self.select = untrained, methods, select

    @cached_property
    def trained(self) -> list[Method]:
        """The losses that were trained in every fold."""
        return [method for method in self.methods if method.runs]

    def _score(self, run: Run) -> float:
        return validation_of(run, self.select)

    @cached_property
    def method(self) -> Method | None:
        """The loss of the model: the best on validation classes in the mean over folds; the recipe's where no classes
        were held out to choose; None: nothing was trained."""
        if not self.trained or not self.plan.share:
            return self.trained[0] if self.trained else None
        return max(self.trained, key=lambda method: sum(self._score(run) for run in method.runs))

    @cached_property
    def chosen(self) -> list[Run]:
        """The run that each fold would choose by its own validation classes."""
        if not self.trained or not self.plan.share:
            return list(self.trained[0].runs) if self.trained else []
        return [max(runs, key=self._score) for runs in zip(*(method.runs for method in self.trained), strict=True)]

    @property
    def settings(self) -> dict[str, Any]:
        """Those of a model on all classes: the loss, and the medians of what the folds chose; nothing was trained: {}."""
        if self.method is None:
            return {}
        finals = [run.read_json("final.json") for run in self.method.runs]
        return {
            **self.method.words,
            "model.cut": self.plan.cut,
            "train.epochs": max(1, round(statistics.median(final["epoch"] for final in finals))),
            "train.blend": float(statistics.median(final.get("blend", 1.0) for final in finals)),
        }

    def _tested(self, runs: Sequence[Run], metric: str) -> ByClass | None:
        return tested(runs, metric) if runs else None

    def _gain(self, runs: Sequence[Run], metric: str) -> Over | None:
        trained, untrained = self._tested(runs, metric), self._tested(self.untrained, metric)
        return gain(trained, untrained) if trained is not None and untrained is not None else None

    @cached_property
    def helps(self) -> bool:
        """Is MAP@R surely higher with training, and Recall@1 not lower?"""
        precise, first = (self._gain(self.chosen, metric) for metric in ("map_at_r", "recall@1"))
        if precise is None or precise.low is None or first is None:
            return False
        return precise.low > 0 and first.mean > -LOST

    def estimate(self) -> dict[str, Any]:
        """What the model's run stores of it."""
        values: dict[str, Any] = {}
        for metric in METRICS:
            for what, runs in (("untrained", self.untrained), ("trained", self.chosen)):
                if (side := self._tested(runs, metric)) is not None:
                    values.setdefault(what, {})[metric] = vars(worth(side))
            if (difference := self._gain(self.chosen, metric)) is not None:
                values.setdefault("gain", {})[metric] = vars(difference)
        return {
            "fit": self.name,
            "helps": self.helps,
            "verdict": self.verdict,
            "classes": self.classes,
            "folds": [run.hash for run in self.chosen],
            "untrained_folds": [run.hash for run in self.untrained],
            **values,
        }

    # -- in words ------------------------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        """The verdict in one or two sentences."""
        if not self.plan.folds:
            lone = self.classes - self.searchable
            what = counted(self.classes, "class", "classes") + (f", {lone} of them with one image" if lone else "")
            return (
                f"{what}: too few to hold some out (at least {LEAST_CLASSES} with two images), so nobody could say "
                "whether training helps. The model is the pretrained network."
            )
        parts = []
        for metric in ("recall@1", "map_at_r"):
            before = self._tested(self.untrained, metric)
            if before is None:
                continue
            trained = self._tested(self.chosen, metric)
            shown = worth(before if trained is None else trained)
            words = f"{HEADINGS[metric]} {_percent(shown)}"
            parts.append(
                words if trained is None else f"{words}; {WITHOUT} {SHARE.text(worth(before).mean, digits=1)} %"
            )
        seen = f"On classes it has never seen, {_at_a_time(self.classes, self.plan.folds)}: {'. '.join(parts)}."
        if not self.chosen:
            return f"{seen} There was no time to train: take the pretrained network, or give it more minutes."
        if self.helps:
            return f"{seen} For this training: it helps here."
        return f"{seen} Training does not help here: take the pretrained network."

    @property
    def words(self) -> list[str]:
        """The verdict."""
        return [self.verdict]

    @property
    def tables(self) -> list[Table]:
        """One row per network, the untrained one last."""
        if not self.plan.folds:
            return []
        rows: list[list[Any]] = []
        best = None if self.method is None else self._tested(self.method.runs, "map_at_r")
        ordered = sorted(self.trained, key=lambda method: method is not self.method)
        for name, runs in [*((method.name, method.runs) for method in ordered), (WITHOUT, self.untrained)]:
            sides = [self._tested(runs, metric) for metric in METRICS]
            cells: list[Any] = [name]
            for side in sides:
                shown = None if side is None else worth(side)
                cells += [None] * 3 if shown is None else [shown.mean, shown.low, shown.high]
            difference = self._gain(runs, "map_at_r") if name != WITHOUT else None
            cells += [None] * 3 if difference is None else [difference.mean, difference.low, difference.high]
            first = best is None or (self.method is not None and name == self.method.name)
            cells.append(None if first else _beside(sides[1], best))
            rows.append(cells)
        columns: list[Any] = ["network"]
        for metric in METRICS:
            key = metric.replace("@", "_")
            columns += [
                Column(key, HEADINGS[metric], SHARE, digits=1),
                Column(f"{key}_low", "95 % interval", SHARE, digits=1, to=f"{key}_high"),
                f"{key}_high",
            ]
        columns += [
            Column("gain", "MAP@R gained, points", POINTS, digits=1, signed=True),
            Column("gain_low", "95 % interval", POINTS, digits=1, to="gain_high", signed=True),
            "gain_high",
            Column("tied", "beside the first"),
        ]
        return [Table("fit", columns, rows, f"{self.plan.folds} folds over {self.classes} classes", self._notes())]

    def _notes(self) -> list[str]:
        notes = [
            "every class was tested once, by models that never saw it, in a gallery of the classes of its fold; "
            "intervals are over classes, for one training per fold"
        ]
        if self.plan.share:
            notes.append(
                "loss, epoch and blend were chosen in each fold on classes held out for it, never by this test"
            )
        if self.plan.cut != "none":
            notes.append(f"the part of the network behind {self.plan.cut} was trained; with more minutes, all of it")
        return notes + [f"{method.name}: {method.error}" for method in self.methods if method.error]

    @property
    def below(self) -> list[str]:
        """What the model is, and where."""
        what = "trained on all classes" if self.helps else "the untrained network"
        if self.helps and self.method is not None:
            what += f" with {self.method.name}"
        return [f"the model: {self.run.path} ({what}; {SECONDS.text(self.seconds)})"]


def _percent(value: Over) -> str:
    mean = SHARE.text(value.mean, digits=1)
    if value.low is None or value.high is None:
        return f"{mean} %"
    return f"{mean} % ({SHARE.text(value.low, digits=1)} to {SHARE.text(value.high, digits=1)})"


def _at_a_time(classes: int, folds: int) -> str:
    return f"{counted(round(classes / folds), 'class', 'classes')} at a time"


def _beside(side: ByClass | None, best: ByClass | None) -> str | None:
    """How a network stands beside the first: whether other classes might turn their order round."""
    if side is None or best is None:
        return None
    difference = gain(side, best)
    if difference.low is None or difference.high is None:
        return None
    return "tied" if difference.low <= 0 <= difference.high else "better" if difference.low > 0 else "worse"
