"""Searches as tables and figures: what was found, its history, and which settings mattered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.comparison import verdicts
from nearkin.comparison.pages import Sheet, family_words
from nearkin.evaluation.metrics.base import metric_of
from nearkin.spaces import shown
from nearkin.statistics.unit import Nothing
from nearkin.studies.propose import COMPLETE, FAILED, PRUNED, RUNNING, begins_with_own, optuna_module, planned
from nearkin.studies.search import Search
from nearkin.studies.trials import Ledger
from nearkin.tuning.tuned import Gain

FEWEST = 8  # trials from which the importance of settings is told


def plan_sheet(searches: Sequence[Search]) -> Sheet:
    """What would be searched."""
    rows = [
        [search.name, key, str(space), space.source, shown(search.start[key])]
        for search in searches
        for key, space in search.space.items()
    ]
    first = searches[0]
    halving = f", halving at {', '.join(map(str, first.rungs[:-1]))}" if first.keep > 1 else ""
    notes = [
        f"{planned(first)} trials for every row by {first.sampler}; runs of a trial: {len(first.specs)}; "
        f"epochs: {first.rungs[-1]}{halving}"
    ]
    return Sheet(f"search {first.study}", ["row", "setting", "space", "source", "own value"], rows, 1, notes)


def found_sheet(ledgers: Sequence[Ledger]) -> Sheet:
    """The best values of every row, beside its own."""
    rows, notes = [], []
    for ledger in ledgers:
        search, trials, best = ledger.search, ledger.trials(), ledger.best()
        own = trials[0].scores[-1] if trials and begins_with_own(search) and trials[0].state == COMPLETE else None
        ended = sum(t.state != RUNNING for t in trials)
        failed = sum(t.state == FAILED for t in trials)
        different = len({tuple(sorted((k, str(v)) for k, v in t.values.items())) for t in trials})
        count = f"{ended} of {planned(search)}" + (f", {failed} failed" if failed else "")
        count += f", {different} different" if different < len(trials) else ""
        values = "–" if best is None else ", ".join(f"{key}={shown(value)}" for key, value in best.values.items())
        rows.append(
            [
                search.name,
                count,
                values,
                amount(search.select, own),
                amount(search.select, None if best is None else best.score),
            ]
        )
        outside = [f"{k}={shown(v)}" for k, v in search.start.items() if not search.space[k].contains(v)]
        if outside:
            notes.append(f"{search.name}: its own {', '.join(outside)} lies outside the space that is searched")
        if search.keep > 1:
            trained, whole = ledger.epochs(), len(trials) * search.rungs[-1] * len(search.specs)
            saved = f"{100 * (1 - trained / whole):.0f} %" if whole else "0 %"
            notes.append(f"{search.name}: successive halving trained {trained:,} of {whole:,} epochs, {saved} saved")
    select, folds = ledgers[0].search.select, len(ledgers[0].search.specs)
    over = f", mean over {folds} folds" if folds > 1 else ""
    first = f"trials are compared on validation classes, by {select}{over}; none was tested"
    header = ["row", "trials", "best values", f"own {unit_of(select)}", f"best {unit_of(select)}"]
    return Sheet(f"search {ledgers[0].search.study}, by validation {select}", header, rows, 2, [first, *notes])


def trials_sheet(ledger: Ledger) -> Sheet:
    """Every trial of one search."""
    search = ledger.search
    rows = []
    for trial in ledger.trials():
        reached = search.rungs[len(trial.scores) - 1] if trial.scores else 0
        state = trial.state if trial.state != PRUNED else f"{trial.state}, epoch {reached}"
        rows.append(
            [
                str(trial.number),
                state,
                *(shown(trial.values[key]) for key in search.space),
                amount(search.select, trial.score),
            ]
        )
    errors = list(dict.fromkeys(f"trial {t.number} failed: {t.error}" for t in ledger.trials() if t.error))
    header = ["trial", "state", *search.space, f"validation {unit_of(search.select)}"]
    return Sheet(f"{search.name}: trials", header, rows, 1 + len(search.space), errors[:3])


def importance(ledger: Ledger) -> dict[str, float]:
    """The share of each setting in what varies between trials (fANOVA, Hutter et al. 2014); empty with few trials."""
    optuna = optuna_module()
    ended = [t for t in ledger.trials() if t.state == COMPLETE]
    if len(ended) < FEWEST or len({t.score for t in ended}) < 2 or len(ledger.search.space) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    try:
        return dict(optuna.importance.get_param_importances(ledger.study, evaluator=evaluator))
    except (ValueError, RuntimeError):  # all trials had one value of every setting
        return {}


def importance_sheet(ledgers: Sequence[Ledger]) -> Sheet | None:
    """Of every row; None where nothing can be said."""
    rows = [
        [ledger.search.name, key, f"{share:.2f}"] for ledger in ledgers for key, share in importance(ledger).items()
    ]
    if not rows:
        return None
    notes = [
        "the share of a setting in the variance of the validation result over its space, from a random forest on "
        "the trials (fANOVA); with few trials it is rough"
    ]
    return Sheet("importance of settings", ["row", "setting", "share"], rows, 1, notes)


def gains_sheet(gains: Sequence[Gain]) -> Sheet:
    """Tuned less default on the test: the difference, its interval with its parts, and the verdict."""
    rows = []
    for gain in gains:
        metric, pair, d = gain.metric, gain.pair, gain.pair.difference
        numbers = ["–"] * 5
        if d is not None and not isinstance(pair.shared, Nothing):
            tuned, default = pair.shared.values.mean(axis=1)
            numbers = [
                str(d.n),
                amount(metric, default),
                amount(metric, tuned),
                verdicts.amount(metric, d.mean, signed=True),
                verdicts.span(metric, d.low, d.high, signed=True),
            ]
        p = "–" if pair.p is None else "< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}"
        rows.append(
            [
                gain.name,
                metric,
                verdicts.verdict_words(pair, metric),
                *numbers,
                verdicts.interval_words(pair, metric),
                p,
            ]
        )
    family = verdicts.Family([gain.pair for gain in gains], "every tuned row against its default one, for each metric")
    notes = [
        "seeds that no trial had, each run tested once; means are over the seeds and folds that both have",
        *family_words(family),
    ]
    header = [
        "row",
        "metric",
        "verdict",
        "seeds",
        "default",
        "tuned",
        "tuned - default",
        "95 % interval",
        "its parts",
        "p (Holm)",
    ]
    return Sheet("what tuning was worth on the test", header, rows, 7, notes)


def amount(metric: str, value: float | None) -> str:
    """A value as tables have it; a dash for none."""
    return "–" if value is None else verdicts.amount(metric, value)


def unit_of(metric: str) -> str:
    """Its name, with the sign of per cent where it is a share."""
    return f"{metric} %" if metric_of(metric).is_share else metric


def history_figure(ledgers: Sequence[Ledger], path: Path) -> None:
    """One panel per row: every trial, and the best so far; beside it the importance of its settings."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(10, 2.6 * len(ledgers)), dpi=100, layout="constrained")
    axes: Any = figure.subplots(len(ledgers), 2, squeeze=False, width_ratios=[2, 1])
    for (left, right), ledger in zip(axes, ledgers, strict=True):
        select = ledger.search.select
        scale = 100 if metric_of(select).is_share else 1
        for state, mark, colour in ((COMPLETE, "o", "#1f77b4"), (PRUNED, "x", "#999999")):
            own = [t for t in ledger.trials() if t.state == state and t.score is not None]
            if own:
                scores = [scale * (t.score or 0) for t in own]
                left.plot([t.number for t in own], scores, mark, color=colour, label=state)
        ended = [t for t in ledger.trials() if t.state == COMPLETE and t.score is not None]
        best = np.minimum.accumulate if ledger.search.sign < 0 else np.maximum.accumulate
        if ended:
            left.step(
                [t.number for t in ended],
                best([scale * (t.score or 0) for t in ended]),
                where="post",
                color="#d62728",
                label="best so far",
            )
        left.set_title(ledger.search.name, fontsize=12, loc="left")
        left.set_xlabel("trial")
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_ylabel(f"validation {unit_of(select)}")
        shares = importance(ledger)
        right.barh(list(shares)[::-1], list(shares.values())[::-1], color="#1f77b4")
        right.set_title("importance" if shares else "too few trials for the importance of settings", fontsize=10)
        if not shares:
            right.axis("off")
        for each in (left, right):
            each.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.savefig(path)
