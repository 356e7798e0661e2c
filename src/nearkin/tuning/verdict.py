"""What a choice says: who won, by how much and how sure that is, what it rests on, and what comes next."""

import numpy as np
from scipy import stats

from nearkin.comparison.pages import Sheet
from nearkin.evaluation.retrieval import evaluate
from nearkin.runs.run import Run
from nearkin.statistics.intervals import mean_interval
from nearkin.statistics.paired import paired
from nearkin.tuning.choose import Candidate, Choice
from nearkin.tuning.pages import amount, unit_of
from nearkin.tuning.portfolio import UNTRAINED
from nearkin.tuning.schedule import UNITS


def table(choice: Choice) -> Sheet:
    """All methods: what they had when screened, and their final runs."""
    select = choice.select
    finals = {c.name: choice.mean(c) for c in choice.finalists}
    rows = []
    for name, score in sorted([*finals.items(), (UNTRAINED, choice.plain)], key=lambda row: -choice.sign * row[1]):
        own = choice.candidates.get(name)
        rows.append([name, *_screened(choice, own), amount(select, score), str(len(choice.seeds)) if own else "–"])
    others = [c for c in choice.candidates.values() if c.name not in finals]
    others.sort(key=lambda c: (-len(c.screened), -choice.sign * c.screened[-1] if c.screened else 0.0))
    rows += [[c.name, *_screened(choice, c), "–", "–"] for c in others]
    notes = [f"validation {select} on classes that no run was trained on; only the winner was tested"]
    if (agreed := agreement(choice)) is not None:
        notes.append(f"rank correlation of screening with the final runs: {agreed[0]:.2f}, over {agreed[1]} methods")
    notes += [f"{name} was to be trained for real; the time did not suffice" for name in choice.unfinished]
    notes += [f"{c.name}: {c.error}" for c in choice.candidates.values() if c.error]
    header = ["method", "screened, 1 unit", "2 units", f"final {unit_of(select)}", "seeds"]
    return Sheet(f"{choice.name}: by validation {unit_of(select)}", header, rows, 4, notes)


def _screened(choice: Choice, candidate: Candidate | None) -> list[str]:
    scores = candidate.screened if candidate else []
    return [amount(choice.select, scores[i]) if i < len(scores) else "–" for i in range(2)]


def agreement(choice: Choice) -> tuple[float, int] | None:
    """Spearman's correlation of the last screening result and the final one over finalists; None below three."""
    found = choice.finalists
    if len(found) < 3:
        return None
    pairs = [(c.screened[-1], choice.mean(c)) for c in found]
    value = stats.spearmanr(*zip(*pairs, strict=True)).statistic
    return (float(value), len(pairs)) if np.isfinite(value) else None


def sentences(choice: Choice) -> list[str]:
    """The verdict in words."""
    said = (_won(choice), _lead(choice), _over_untrained(choice), _rests_on(choice), _more_time(choice))
    return [each for each in said if each]


def _won(choice: Choice) -> str:
    recall, precision = (100 * choice.tested[metric] for metric in ("recall@1", "map_at_r"))
    tested = f"on classes never seen: Recall@1 {recall:.1f} %, MAP@R {precision:.1f} %"
    if choice.winner is not None:
        return f"{choice.winner.name} wins; {tested}"
    if choice.finalists:
        return f"the untrained network wins: no loss was better on validation classes within this time; {tested}"
    return f"no loss could be trained within this time: the untrained network is all there is; {tested}"


def _lead(choice: Choice) -> str:
    """By how much, over the next best, with an interval."""
    ranked = [(c.name, choice.mean(c), c.runs[0]) for c in choice.finalists]
    assert choice.untrained is not None
    ranked.append((UNTRAINED, choice.plain, choice.untrained))
    ranked.sort(key=lambda each: -choice.sign * each[1])
    if len(ranked) < 2:
        return ""
    (_, mean, run), (second, other, run_of_second) = ranked[:2]
    trained = [c for c in choice.finalists if c.name in (ranked[0][0], second)]
    if len(choice.seeds) >= 3 and len(trained) == 2:
        a, b = (c.scores(choice.select) for c in sorted(trained, key=lambda c: c.name != ranked[0][0]))
        d = paired([a[seed] for seed in choice.seeds], [b[seed] for seed in choice.seeds])
        mean_d, low, high, over = d.mean, d.low, d.high, f"{d.n} seeds"
    else:
        differences = by_class(run, run_of_second, choice.select)
        found = mean_interval(differences)
        mean_d, low, high = mean - other, found.low, found.high
        over = f"{len(differences)} validation classes, one seed"
    if low is None or high is None:
        return f"its lead over {second} is {100 * mean_d:+.1f} points on validation; one class gives no interval"
    sure = "it can be believed" if low * choice.sign > 0 or high * choice.sign < 0 else "it may be chance"
    return f"its lead over {second} is {100 * mean_d:+.1f} points on validation (95 % interval over {over}: " \
           f"{100 * low:+.1f} to {100 * high:+.1f}): {sure}"  # fmt: skip


def _over_untrained(choice: Choice) -> str:
    """Was training worth it? Told where another loss stands between the winner and the untrained network."""
    if choice.winner is None or len(choice.finalists) < 2 or choice.sign * choice.mean(choice.finalists[1]) < (
        choice.sign * choice.plain):
        return ""
    assert choice.untrained is not None
    found = mean_interval(by_class(choice.winner.runs[0], choice.untrained, choice.select))
    lead = f"its lead over {UNTRAINED} is {100 * (choice.mean(choice.winner) - choice.plain):+.1f} points"
    if found.low is None or found.high is None:
        return lead
    sure = "it can be believed" if found.low * choice.sign > 0 else f"it may be chance: compare with {UNTRAINED}, too"
    return f"{lead} (over {found.n} validation classes: {100 * found.low:+.1f} to {100 * found.high:+.1f}): {sure}"


def by_class(first: Run, second: Run, select: str) -> np.ndarray:
    """The difference of two runs on their validation images, class by class.                                   (C,)"""
    values = []
    for run in (first, second):
        with np.load(run.path / "validation.npz") as held:
            labels = held["labels"]
            found = evaluate(held["embeddings"], labels, metrics=[select])
        per_query = next(iter(found.per_query.values()))
        values.append(np.array([np.nanmean(per_query[labels == c]) for c in np.unique(labels)]))
    return values[0] - values[1]


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


def counted(number: int, what: str) -> str:
    """1 seed, 2 seeds."""
    return f"{number} {what}{'s' * (number != 1)}"


def _more_time(choice: Choice) -> str:
    plan = choice.plan
    if not plan.whole:
        return "with more time it would train longer (up to 20 passes over the images) and screen every method it knows"
    if plan.seeds < 5:
        return "with more time it would train the finalists with more seeds, up to five, and know better how sure it is"
    return "more time would change nothing: runs have their full length and five seeds"
