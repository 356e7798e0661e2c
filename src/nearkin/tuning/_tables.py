"""Searches as tables and figures: what was found, its history, and which settings mattered."""

from collections.abc import Sequence
from typing import Any

from nearkin.comparison import verdicts
from nearkin.comparison.words import family_words
from nearkin.evaluation.metrics.base import difference_unit, unit_of
from nearkin.present import Bars, Chart, Column, Lines, Panels, Table
from nearkin.spaces import shown
from nearkin.statistics.unit import Nothing
from nearkin.studies.propose import COMPLETE, FAILED, PRUNED, RUNNING, begins_with_own, optuna_module, planned
from nearkin.studies.search import Search
from nearkin.studies.trials import Ledger
from nearkin.tuning._tuned import Gain
from nearkin.units import COUNT, NUMBER, SHARE, P, counted

SO_FAR = "best so far"
FEWEST = 8  # trials from which the importance of settings is told


def plan_table(searches: Sequence[Search]) -> Table:
    """What would be searched."""
    rows = [
        [search.name, key, str(space), space.source, shown(search.start[key])]
        for search in searches
        for key, space in search.space.items()
    ]
    first = searches[0]
    halving = f", halving at {', '.join(map(str, first.rungs[:-1]))}" if first.keep > 1 else ""
    counts = [planned(search) for search in searches]
    budget = f"{counted(counts[0], 'trial')} for every row"
    if len(set(counts)) > 1:  # a grid, or a pass over the keys, ends by itself
        budget = "trials: " + ", ".join(f"{n} ({one.name})" for n, one in zip(counts, searches, strict=True))
    notes = [f"{budget} by {first.sampler}; runs of a trial: {len(first.specs)}; epochs: {first.rungs[-1]}{halving}"]
    columns = ["row", "setting", "space", "source", Column("default", "its own value")]
    return Table("plan", columns, rows, f"search {first.study}", notes)


def found_table(ledgers: Sequence[Ledger]) -> Table:
    """The best values of every row, beside its default ones."""
    rows, notes = [], []
    for ledger in ledgers:
        search, trials, best = ledger.search, ledger.trials(), ledger.best()
        default = trials[0].scores[-1] if trials and begins_with_own(search) and trials[0].state == COMPLETE else None
        ended = sum(t.state != RUNNING for t in trials)
        failed = sum(t.state == FAILED for t in trials)
        different = len({tuple(sorted((k, str(v)) for k, v in t.values.items())) for t in trials})
        count = f"{ended} of {planned(search)}" + (f", {failed} failed" if failed else "")
        count += f", {different} different" if different < len(trials) else ""
        values = None if best is None else ", ".join(f"{key}={shown(value)}" for key, value in best.values.items())
        rows.append([search.name, count, values, default, None if best is None else best.score])
        outside = [f"{k}={shown(v)}" for k, v in search.start.items() if not search.space[k].contains(v)]
        if outside:
            notes.append(f"{search.name}: its own {', '.join(outside)} lies outside the space that is searched")
        if search.keep > 1:
            trained, whole = ledger.epochs(), len(trials) * search.rungs[-1] * len(search.specs)
            saved = SHARE.text(1 - trained / whole, digits=0) if whole else "0"
            notes.append(f"{search.name}: successive halving trained {trained:,} of {whole:,} epochs, {saved} % saved")
    select, folds = ledgers[0].search.select, len(ledgers[0].search.specs)
    over = f", mean over {folds} folds" if folds > 1 else ""
    first = f"trials are compared on validation classes, by {select}{over}; none was tested"
    unit = unit_of(select)
    scores = [Column("default", f"default {select}", unit), Column("best", f"best {select}", unit)]
    columns = ["row", "trials", Column("values", "best values"), *scores]
    return Table("found", columns, rows, f"search {ledgers[0].search.study}, by validation {select}", [first, *notes])


def trials_table(ledger: Ledger) -> Table:
    """Every trial of one search."""
    search = ledger.search
    rows = []
    for trial in ledger.trials():
        reached = search.rungs[len(trial.scores) - 1] if trial.scores else 0
        state = trial.state if trial.state != PRUNED else f"{trial.state}, epoch {reached}"
        rows.append([trial.number, state, *(trial.values[key] for key in search.space), trial.score])
    errors = list(dict.fromkeys(f"trial {t.number} failed: {t.error}" for t in ledger.trials() if t.error))
    score = Column("validation", f"validation {search.select}", unit_of(search.select))
    return Table("trials", ["trial", "state", *search.space, score], rows, f"{search.name}: trials", errors[:3])


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


def importance_table(ledgers: Sequence[Ledger]) -> Table | None:
    """Of every row; None where nothing can be said."""
    rows = [[ledger.search.name, key, share] for ledger in ledgers for key, share in importance(ledger).items()]
    if not rows:
        return None
    notes = [
        "the share of a setting in the variance of the validation result over its space, from a random forest on "
        "the trials (fANOVA); with few trials it is rough"
    ]
    columns = ["row", "setting", Column("share", unit=NUMBER, digits=2)]
    return Table("importance", columns, rows, "importance of settings", notes)


def gains_table(gains: Sequence[Gain]) -> Table:
    """Tuned less default on the test: the difference, its interval with its parts, and the verdict."""
    rows = []
    for gain in gains:
        metric, pair, d = gain.metric, gain.pair, gain.pair.difference
        numbers: list[float | None] = [None] * 8
        if d is not None and not isinstance(pair.shared, Nothing):
            tuned, default = (float(mean) for mean in pair.shared.values.mean(axis=1))
            numbers = [d.n, default, tuned, d.mean, d.low, d.high, d.seeds, d.classes]
        unit = difference_unit(metric).name
        rows.append([gain.name, metric, verdicts.verdict_words(pair, metric), *numbers, pair.p, unit])
    family = verdicts.Family([gain.pair for gain in gains], "every tuned row against its default one, for each metric")
    notes = [
        "seeds that no trial had, each run tested once; means are over the seeds and folds that both have; shares in "
        "per cent, their differences in points",
        *family_words(family),
    ]
    columns = [
        "row",
        "metric",
        "verdict",
        Column("seeds", unit=COUNT),
        Column("default", unit="unit"),
        Column("tuned", unit="unit"),
        Column("difference", "tuned - default", unit="unit", signed=True),
        Column("low", "95 % interval", unit="unit", to="high", signed=True),
        "high",
        Column("half_over_seeds", "± seeds", unit="unit"),
        Column("half_over_classes", "± classes", unit="unit"),
        Column("p_holm", "p (Holm)", P),
        "unit",
    ]
    return Table("gains", columns, rows, "what tuning was worth on the test", notes)


def history_chart(ledgers: Sequence[Ledger]) -> Panels:
    """Two panels per row: every trial and the best so far; the importance of its settings."""
    panels: list[Chart] = []
    for ledger in ledgers:
        search = ledger.search
        rows: list[list[Any]] = []
        for state in (COMPLETE, PRUNED):
            rows += [[t.number, t.score, state] for t in ledger.trials() if t.state == state and t.score is not None]
        best = min if search.sign < 0 else max
        scores = [(number, score) for number, score, state in rows if state == COMPLETE]
        so_far = [best(score for _, score in scores[: i + 1]) for i in range(len(scores))]
        rows += [[number, score, SO_FAR] for (number, _), score in zip(scores, so_far, strict=True)]
        columns = ["trial", Column("score", f"validation {search.select}", unit_of(search.select)), "state"]
        history = Table(f"{search.name} trials", columns, rows)
        looks: dict[str, Any] = {"by": "state", "loose": [COMPLETE, PRUNED]}
        panels.append(Lines(name="history", title=search.name, table=history, x="trial", y="score", **looks))
        shares = [[key, share] for key, share in importance(ledger).items()]
        settings = Table(f"{search.name} importance", ["setting", Column("share", unit=NUMBER, digits=2)], shares)
        title = "importance" if shares else "too few trials for the importance of settings"
        panels.append(Bars(name="importance", title=title, table=settings, x="setting", y="share", lying=True))
    return Panels(name="tune", title="Searches", charts=panels, across=2)
