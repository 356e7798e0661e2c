"""The tournament of Psomas 2020 over one's own study: ranks over experiments, their total, average and deviation."""

import statistics
from dataclasses import dataclass

import numpy as np

from nearkin.comparison.compare import Comparison
from nearkin.errors import NearkinError
from nearkin.statistics.ranks import Friedman, Tournament, alike, friedman, tournament


@dataclass
class Standing:
    """Methods by the sum of their ranks. An experiment is a setting (a network and size) with its mean over seeds;
    where there is one setting only, each seed is an experiment."""

    methods: list[str]                          # best first
    experiments: list[str]
    result: Tournament                          # columns as `methods`
    test: Friedman | None                       # None with one experiment or two methods
    over: str                                   # settings or seeds

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Methods that the critical difference cannot tell apart."""
        if self.test is None:
            return []
        found = alike(self.result.average, self.test.critical_difference)
        return [tuple(self.methods[i] for i in group) for group in found]


def standing(comparison: Comparison) -> Standing:
    """Rank the trained methods of a comparison in every experiment that all of them took part in."""
    methods = [method for method in comparison.trained if method.blocks]
    if len(methods) < 2:
        raise NearkinError(f"a tournament needs at least two trained methods; there is {len(methods)}")
    blocks = [block for block in comparison.blocks if all(block in method.blocks for method in methods)]
    if len(blocks) > 1:
        over, names = "settings", [" ".join(block) for block in blocks]
        scores = [[statistics.fmean(method.blocks[block].values()) for method in methods] for block in blocks]
    else:
        seeds = sorted(set.intersection(*(set(method.values) for method in methods)))
        over, names = "seeds", [f"seed {seed}" for seed in seeds]
        scores = [[method.values[seed] for method in methods] for seed in seeds]
    if not scores:
        raise NearkinError(f"the {len(methods)} methods have no experiment in common: nothing to rank")
    return _ordered([method.name for method in methods], names, np.array(scores), over, comparison.better == "high")


def _ordered(methods: list[str], experiments: list[str], scores: np.ndarray, over: str, high: bool) -> Standing:
    found = tournament(scores, higher_is_better=high)
    order = np.argsort(found.total, kind="stable")
    result = Tournament(found.ranks[:, order], found.total[order], found.average[order], found.std[order])
    test = friedman(scores) if len(scores) > 1 and len(methods) > 2 else None
    return Standing([methods[i] for i in order], experiments, result, test, over)


def tables_of(standing: Standing) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the tournament's table: total, average, deviation, then the rank in each experiment."""
    header = ["method", "total", "average", "std", *standing.experiments]
    r = standing.result

    def rank(value: float) -> str:
        return f"{value:g}"

    rows = [
        [name, rank(r.total[i]), f"{r.average[i]:.2f}", "–" if np.isnan(r.std[i]) else f"{r.std[i]:.2f}",
         *(rank(row[i]) for row in r.ranks)]
        for i, name in enumerate(standing.methods)
    ]  # fmt: skip
    return header, rows
