"""What a choice says: who won, by how much and how sure that is, what it rests on, and what comes next."""

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from nearkin.comparison.compare import WITHIN
from nearkin.comparison.verdicts import interval_words, points, span, verdict_words
from nearkin.evaluation.metrics.base import difference_unit, metric_of, unit_of
from nearkin.evaluation.retrieval import evaluate
from nearkin.present import Column, Table
from nearkin.runs.run import Run
from nearkin.statistics.unit import ByClass, Row, by_class
from nearkin.statistics.verdict import Outcome, Pair, judge
from nearkin.tuning._portfolio import UNTRAINED
from nearkin.tuning._schedule import UNITS
from nearkin.tuning.choose import Candidate, Choice
from nearkin.units import COUNT, counted


def table(choice: Choice) -> Table:
    """All methods: what they had when screened, and their final runs."""
    select = choice.select
    finals = {c.name: choice.mean(c) for c in choice.finalists}
    rows: list[list[Any]] = []
    for name, score in sorted([*finals.items(), (UNTRAINED, choice.plain)], key=lambda row: -choice.sign * row[1]):
        candidate = choice.candidates.get(name)
        rows.append([name, *_screened(candidate), score, len(choice.seeds) if candidate else None])
    others = [c for c in choice.candidates.values() if c.name not in finals]
    others.sort(key=lambda c: (-len(c.screened), -choice.sign * c.screened[-1] if c.screened else 0.0))
    rows += [[c.name, *_screened(c), None, None] for c in others]
    notes = [f"validation {select} on classes that no run was trained on; only the winner was tested"]
    notes += [f"{name} was to be trained for real; the time did not suffice" for name in choice.unfinished]
    notes += [f"{c.name}: {c.error}" for c in choice.candidates.values() if c.error]
    unit, beside = unit_of(select), difference_unit(select)  # the heading of the last says what the unit is
    columns = ["method", Column("screened", "screened, 1 unit", beside), Column("twice", "2 units", beside)]
    columns += [Column("final", f"final {select}", unit), Column("seeds", unit=COUNT)]
    return Table("choice", columns, rows, f"{choice.name}: by validation {select}", notes)


def _screened(candidate: Candidate | None) -> list[float | None]:
    return [*(candidate.screened if candidate else []), None, None][:2]


def sentences(choice: Choice) -> list[str]:
    """The verdict in words."""
    said = (_won(choice), *_leads(choice), _rests_on(choice), _more_time(choice))
    return [each for each in said if each]


def _won(choice: Choice) -> str:
    recall, precision = (100 * choice.tested[metric] for metric in ("recall@1", "map_at_r"))
    tested = f"on classes never seen: Recall@1 {recall:.1f} %, MAP@R {precision:.1f} %"
    if choice.winner is not None:
        return f"{choice.winner.name} wins; {tested}"
    if choice.finalists:
        return f"the untrained network wins: no loss was better on validation classes within this time; {tested}"
    return f"no loss could be trained within this time: the untrained network is all there is; {tested}"


def leads(finalists: Sequence[Row], untrained: Row, *, sign: int, within: float | None = None) -> list[Pair]:
    """The best row against the next, and against the untrained network where that is another one.

    The family is every two of the rows: the values that pick the winner are those that it is judged by, so that any two
    of them might have been told.

    Parameters:
        finalists: their validation results, on the same seeds.
        untrained: the untrained network's, on these seeds.
        sign: of the metric: 1 where high is better, -1 where low is.
        within: what is small enough to be called equivalent.
    """
    ranked = sorted([untrained, *finalists], key=lambda row: -sign * sum(row.values.values()) / len(row.values))
    judged = judge(list(itertools.combinations(ranked, 2)), sign=sign, within=within)
    return [pair for pair in judged if pair.first is ranked[0] and pair.second in (ranked[1], untrained)]


def validated(name: str, scores: Mapping[int, float], runs: Mapping[int, Run], select: str) -> Row:
    """Validation results as a row, class by class where the metric is a mean over queries.

    Parameters:
        name: of the row.
        scores: seed -> validation result.
        runs: seed -> the run that has it.
        select: the metric.
    """
    if metric_of(select).kind != "query":
        return Row.of_seeds(name, scores)

    @cache
    def of_run(run: Run) -> ByClass | None:
        with np.load(run.file("validation.npz")) as stored:
            labels, z = stored["labels"], stored["embeddings"]
        return by_class(labels, evaluate(z, labels, metrics=[select]).per_query[select])

    classes = of_run(next(iter(runs.values())))
    queries = None if classes is None else int(classes.queries.sum())
    return Row.of_seeds(name, scores, queries=queries, by_class=lambda key: of_run(runs[key.seed]))


def _leads(choice: Choice) -> list[str]:
    """By how much the winner leads, and what may be said of that."""
    if not choice.finalists:
        return []
    assert choice.untrained is not None
    select, seeds = choice.select, choice.seeds
    finalists = []
    for candidate in choice.finalists:
        scores = candidate.scores(select)
        finalists.append(validated(candidate.name, {seed: scores[seed] for seed in seeds}, candidate.runs, select))
    untrained = validated(UNTRAINED, dict.fromkeys(seeds, choice.plain), dict.fromkeys(seeds, choice.untrained), select)
    within = WITHIN if metric_of(select).is_share else None
    pairs = leads(finalists, untrained, sign=choice.sign, within=within)
    said = [_lead(pair, select) for pair in pairs]
    if any(pair.p is not None for pair in pairs):
        said.append(
            f"{UNTRAINED} was run once: its value stands beside every seed; the {pairs[0].family} comparisons "
            "of every two of these rows are one family, because any of them might have won"
        )
    return said


def _lead(pair: Pair, select: str) -> str:
    """One lead in words: positive is better, whatever the metric."""
    d = pair.difference
    assert d is not None  # the same seeds
    words = f"its lead over {pair.second.name} is {points(select, pair.sign * d.mean, signed=True)} on validation"
    if pair.outcome is Outcome.NONE or d.low is None or d.high is None:
        return f"{words}; {verdict_words(pair, select)}"
    low, high = sorted((pair.sign * d.low, pair.sign * d.high))
    words += f" (95 % interval {span(select, low, high, signed=True)}; {interval_words(pair, select)})"
    return f"{words}: {'it can be believed' if pair.decided else verdict_words(pair, select)}"


def _rests_on(choice: Choice) -> str:
    plan = choice.plan
    if not plan.batches:
        short = f"{choice.seconds / 60:g} minutes are too short to train on these data"
        return f"it rests on nothing but the untrained network: {short}"
    steps = f"{counted(plan.methods, 'method')} screened for {plan.batches:,} to {2 * plan.batches:,} steps"
    seeds = counted(len(choice.seeds), "seed")
    finals = f"{len(choice.finalists)} trained for {UNITS * plan.batches:,} steps with {seeds}"
    few = ": little to rest on" if not plan.whole else ""
    return f"it rests on {steps}, {finals}, in {choice.used / 60:.1f} of {choice.seconds / 60:g} minutes{few}"


def _more_time(choice: Choice) -> str:
    plan = choice.plan
    if not plan.whole:
        return "with more time it would train longer (up to 20 passes over the images) and screen every method it knows"
    if plan.seeds < 5:
        return "with more time it would train the finalists with more seeds, up to five, and know better how sure it is"
    return "more time would change nothing: runs have their full length and five seeds"
