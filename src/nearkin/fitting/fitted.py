"""What `nearkin fit` says: does training help here, what is it worth, and which model is it now."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from nearkin.errors import NearkinError, and_more
from nearkin.fitting import in_words
from nearkin.fitting._plan import Plan
from nearkin.fitting.estimate import METRICS, Over, gain, helps, tested, worth
from nearkin.present import Shown, Table
from nearkin.runs.store import Run, Store
from nearkin.runs.tested import validation_of
from nearkin.statistics.unit import ByClass


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
        pretrained: has the network given weights?
        asked: how it was asked for: words, minutes, losses, workers.
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
        pretrained: bool,
        asked: Mapping[str, Any] = MappingProxyType({}),
    ):
        self.name, self.store, self.plan, (self.classes, self.searchable) = name, store, plan, counts
        self.untrained, self.methods, self.select = untrained, methods, select
        self.pretrained, self.asked = pretrained, asked

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
        """Those of a model on all classes: the loss, the medians of what the folds chose; {}: nothing was trained."""
        if self.method is None:
            return {}
        finals = [run.read_json("final.json") for run in self.method.runs]
        train = self.method.runs[0].stored["train"]
        epochs = max(1, round(statistics.median(final["epoch"] for final in finals)))
        return {
            **self.method.words,
            "model.cut": self.plan.cut,
            "train.epochs": epochs,
            "train.warmup": min(epochs, train["warmup"] or 0),  # as long as in the folds
            **self._steps(train["batches_per_epoch"]),
            "train.blend": float(statistics.median(final.get("blend", 1.0) for final in finals)),
        }

    def _steps(self, steps: int | None) -> dict[str, int]:
        """The steps of an epoch on all classes, where the folds had fewer than their images fill: as many per class."""
        if steps is None or "train.batches_per_epoch" in self.asked.get("words", {}):
            return {}
        trained = (1 - 1 / self.plan.folds) * (1 - self.plan.share)  # share of the classes that a fold trains on
        return {"train.batches_per_epoch": round(steps / trained)}

    def by_class(self, runs: Sequence[Run], metric: str) -> ByClass | None:
        """The values of all classes under one network, given by its run of every fold."""
        return tested(runs, metric) if runs else None

    def gain(self, runs: Sequence[Run], metric: str) -> Over | None:
        """What these runs gained over the untrained network."""
        trained, untrained = self.by_class(runs, metric), self.by_class(self.untrained, metric)
        return gain(trained, untrained) if trained is not None and untrained is not None else None

    @cached_property
    def helps(self) -> bool:
        """Is MAP@R surely higher with training, and Recall@1 not surely lower?"""
        precise, first = (self.gain(self.chosen, metric) for metric in ("map_at_r", "recall@1"))
        return precise is not None and first is not None and helps(precise, first)

    def estimate(self) -> dict[str, Any]:
        """What is stored of it: `Fitted.of` reads it again."""
        values: dict[str, Any] = {}
        for metric in METRICS:
            for what, runs in (("untrained", self.untrained), ("trained", self.chosen)):
                if (side := self.by_class(runs, metric)) is not None:
                    values.setdefault(what, {})[metric] = vars(worth(side))
            if (difference := self.gain(self.chosen, metric)) is not None:
                values.setdefault("gain", {})[metric] = vars(difference)
        return {
            "fit": self.name,
            "helps": self.helps,
            "verdict": self.verdict,
            "classes": self.classes,
            "searchable": self.searchable,
            "select": self.select,
            "pretrained": self.pretrained,
            "asked": dict(self.asked),
            "plan": self.plan.as_json(),
            "folds": [run.hash for run in self.chosen],
            "untrained_folds": [run.hash for run in self.untrained],
            "methods": [{**vars(method), "runs": [run.hash for run in method.runs]} for method in self.methods],
            **values,
        }

    @classmethod
    def of(cls, estimate: Mapping[str, Any], run: Run) -> "Fitted":
        """The one that an estimate was stored of.

        Parameters:
            estimate: what `estimate` gave.
            run: the model; its folds are in the same store.
        """
        store = Store(run.path.parent)

        def stored(hashes: Sequence[str]) -> list[Run]:
            runs = [store.run(name) for name in hashes]
            if gone := [run.hash for run in runs if not run.tested]:
                raise NearkinError(
                    f"what run {run.hash} is worth rests on runs that are not in {store.root}: {and_more(gone)}"
                )
            return runs

        methods = [Method(**{**method, "runs": stored(method["runs"])}) for method in estimate["methods"]]
        fitted = cls(
            estimate["fit"],
            store,
            Plan.of(estimate["plan"]),
            (estimate["classes"], estimate["searchable"]),
            stored(estimate["untrained_folds"]),
            methods,
            estimate["select"],
            estimate["pretrained"],
            estimate["asked"],
        )
        fitted.run = run
        return fitted

    # -- in words ------------------------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        """The verdict in one or two sentences."""
        return in_words.verdict(self)

    @property
    def words(self) -> list[str]:
        """The verdict."""
        return [self.verdict]

    @property
    def tables(self) -> list[Table]:
        """One row per network, the untrained one last; none where the classes are too few to test anything."""
        return [in_words.table(self)] if self.plan.folds else []

    @property
    def below(self) -> list[str]:
        """What the model is, and where."""
        return [in_words.model(self)]
