"""The tournament of Psomas 2020 over one's own study: ranks over experiments, their total, average and deviation."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nearkin.comparison.compare import Comparison
from nearkin.errors import NearkinError
from nearkin.statistics.ranks import RankTest, Tournament, alike, experiments_of, permuted_ranks, tournament
from nearkin.statistics.unit import LEAST_SEEDS, Common, Key, Nothing, Row, common
from nearkin.units import P


@dataclass
class Standing:
    """Methods by the sum of their ranks, on the seeds, settings and folds that all of them have. An experiment is a
    setting (a network and size) with its mean over seeds; where there is one setting only, each seed is one."""

    methods: list[str]  # best first
    experiments: list[str]
    result: Tournament  # columns as `methods`
    test: RankTest | None  # None with fewer than three seeds or methods: the table describes
    over: str  # settings or seeds
    seeds: int
    notes: list[str]

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Methods that the critical difference cannot tell apart."""
        if self.test is None:
            return []
        together = alike(self.result.average, self.test.critical_difference)
        return [tuple(self.methods[i] for i in group) for group in together]


@lru_cache(maxsize=16)  # for the table and for the chart
def standing(comparison: Comparison) -> Standing:
    """Rank the trained methods of a comparison in every experiment that all of them took part in."""
    rows = [method.row for method in comparison.trained]
    if len(rows) < 2:
        raise NearkinError(f"a tournament needs at least two trained methods; there is {len(rows)}")
    shared = common(rows)
    if isinstance(shared, Nothing):
        raise NearkinError(f"the {len(rows)} methods have no experiment in common: {shared.reason}; nothing to rank")
    values = np.stack([_of_setting(rows, shared, setting) for setting in shared.settings], axis=2)  # (k, S, N)
    settings = [" ".join(setting) for setting in shared.settings]
    over = "settings" if len(settings) > 1 else "seeds"
    experiments = settings if over == "settings" else [f"seed {seed}" for seed in shared.seeds]
    high, absent = comparison.sign >= 0, [s for s in comparison.settings if s not in shared.settings]
    left_out = ", ".join(" ".join(setting) for setting in absent)
    notes = [f"left out, because not all methods have it: {left_out}"] if absent else []
    ranked = tournament(experiments_of(values).T, higher_is_better=high)
    order = np.argsort(ranked.total, kind="stable")
    result = Tournament(ranked.ranks[:, order], ranked.total[order], ranked.average[order], ranked.std[order])
    enough = len(shared.seeds) >= LEAST_SEEDS and len(rows) > 2
    test = permuted_ranks(values, higher_is_better=high) if enough else None
    names = [rows[i].name for i in order]
    return Standing(names, experiments, result, test, over, len(shared.seeds), notes)


def _of_setting(rows: Sequence[Row], shared: Common, setting: tuple[str, ...]) -> np.ndarray:
    """Values by method and seed in one setting, folds averaged.                                               (k, S)"""
    places = [place for place in shared.places if place.setting == setting]
    return np.array(
        [[statistics.fmean(row.members[Key(seed, place)] for place in places) for seed in shared.seeds] for row in rows]
    )


def words_of(ranked: Standing) -> list[str]:
    """What the test of the ranks says, one sentence each."""
    words = list(ranked.notes)
    if ranked.over == "seeds":
        words.append("one setting only: each seed counts as an experiment")
    if ranked.test is None:
        few = "three seeds" if ranked.seeds < LEAST_SEEDS else "three methods"
        return [*words, f"this table describes and tests nothing: at least {few} are needed"]
    p = P.text(ranked.test.p)
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    test = f"do the methods differ in rank at all? {p} (labels permuted seed by seed, {ranked.seeds} seeds)"
    if ranked.test.critical_difference == np.inf:
        return [*words, f"{test}; ranks of {ranked.seeds} seeds tell no two methods apart"]
    words.append(f"{test}; critical difference of average ranks {ranked.test.critical_difference:.2f} (5 %)")
    return [*words, *(f"not distinguishable by ranks: {'; '.join(group)}" for group in ranked.groups)]
