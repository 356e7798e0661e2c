"""Results of runs as people read them: metrics beside those of the untrained network, and what stands behind them."""

import time
from collections.abc import Mapping
from typing import Any

from nearkin.evaluation.metrics.base import unit_of
from nearkin.present import Column, Shown, Table
from nearkin.runs import listing
from nearkin.runs.run import Run
from nearkin.units import POINTS, SHARE, counted


class Result(Shown):
    """A final run: what it was, its metrics, how its epoch was chosen, where it is stored.

    Parameters:
        run: the run.
        untrained: the pooled features of the same network without training, whose metrics stand beside; None: they
            do not.
    """

    def __init__(self, run: Run, untrained: Run | None = None):
        self.run, self.untrained = run, untrained

    @property
    def words(self) -> list[str]:
        """What the run was."""
        return [f"run:    {listing.describe(self.run.stored)}"]

    @property
    def tables(self) -> list[Table]:
        """Its metrics."""
        validation, test = self.run.read_json("final.json")["validation"], self.run.metrics()
        before = {} if self.untrained is None else self.untrained.metrics()
        rows = [
            [key, validation.get(key), test.get(key), before.get(key), unit_of(key).name] for key in test or validation
        ]
        beside = [] if self.untrained is None else [Column("untrained", "without training", "unit")]
        columns = [Column("metric"), Column("validation", unit="unit"), Column("test", unit="unit"), *beside]
        if self.untrained is None:
            rows = [[*row[:3], row[4]] for row in rows]
        return [Table("result", [*columns, "unit"], rows)]

    @property
    def below(self) -> list[str]:
        """Chosen epoch and rule, data, what was left out, where it is stored."""
        return [*gained(self.run, self.untrained), *result_words(self.run), f"stored: {self.run.path}"]


def gained(run: Run, untrained: Run | None) -> list[str]:
    """What training gained on the test images, one sentence per metric."""
    if untrained is None:
        return []
    after, before = run.metrics(), untrained.metrics()
    sentences = []
    for metric, name in (("recall@1", "Recall@1"), ("map_at_r", "MAP@R")):
        if metric in after and metric in before:
            difference = after[metric] - before[metric]
            verb = "gained" if difference >= 0 else "lost"
            sentences.append(
                f"training {verb} {POINTS.text(abs(difference))} points of {name}: {SHARE.text(after[metric])} %, "
                f"without training {SHARE.text(before[metric])} %"
            )
    return sentences


def result_words(run: Run) -> list[str]:
    """Chosen epoch and rule, data, recipe, and what was left out, one line each."""
    result = run.result if run.tested else run.read_json("final.json")
    chosen = f"epoch {result['epoch']} of {result['epochs_trained']}" if result["epochs_trained"] else "untrained"
    by = f" by {result['select']}" if result["select"] else ""
    chosen += blended(result)
    data = f"data:   {result['split']}, data {run.head()['data_hash']}"
    words = [f"chosen: {chosen}; rule: {result['rule']}{by}", data]
    if "recipe" in result:
        changed = [f"{key} {theirs} -> {ours}" for key, (theirs, ours) in result["recipe"]["overridden"].items()]
        words.append(f"recipe: {result['recipe']['name']}" + (f"; otherwise: {', '.join(changed)}" if changed else ""))
    if result["skipped_images"]:
        words.append(f"skipped: {counted(result['skipped_images'], 'unreadable image')}")
    words += [f"excluded: {what}: {why}" for what, why in result.get("excluded", {}).items()]
    if (run.path / "curve.json").exists() and (best := run.read_json("curve.json")["best_on_test"].get("map_at_r")):
        words.append(
            f"curve:  epoch {best['epoch']} has the best test map_at_r, {SHARE.text(best['value'])} %: "
            "chosen on the test set, so not a result"
        )
    if not run.tested:
        words += [f"not tested: {run.untested()}", *estimated(run)]
    return words


def blended(result: Mapping[str, Any]) -> str:
    """How far the stored network went from its first weights, where that is not the whole way."""
    return f", {result['blend']:g} of the way from its first weights" if "blend" in result else ""


def estimated(run: Run) -> list[str]:
    """What `nearkin fit` says of a model that it made, and the runs that this rests on; nothing for any other run."""
    if not run.has("estimate.json"):
        return []
    estimate = run.read_json("estimate.json")
    folds = ", ".join(estimate["folds"] or estimate["untrained_folds"])
    return [f"estimate: {estimate['verdict']}", *([f"rests on: {folds}"] if folds else [])]


def stored_before(run: Run, began: float) -> list[str]:
    """What of a run is older than a moment: a stored result is never shown as if it had just been made."""

    def when(name: str) -> float:
        return (run.path / name).stat().st_mtime

    def date(name: str) -> str:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(when(name)))

    if when("final.json") >= began:
        return []
    if not run.tested or when("result.json") < began:
        return [f"stored on {date('final.json')}; nothing was trained"]
    return [f"trained on {date('final.json')}; only the test is new"]


class Metrics(dict[str, float], Shown):
    """Metrics of one run's test: metric -> value, and they print as a table.

    Parameters:
        values: metric -> value.
        run: hash of the run.
        distance: what the neighbours were ranked by.
    """

    def __init__(self, values: Mapping[str, float], run: str, distance: str):
        super().__init__(values)
        self.run, self.distance = run, distance

    @property
    def tables(self) -> list[Table]:
        """One row per metric."""
        return [tests_table({self.run: self}, self.distance)]


def tests_table(metrics: Mapping[str, Mapping[str, float]], distance: str) -> Table:
    """Test metrics of several runs side by side.

    Parameters:
        metrics: run -> metric -> value.
        distance: what the neighbours were ranked by.
    """
    keys = dict.fromkeys(key for values in metrics.values() for key in values)
    rows = [[key, *(values.get(key) for values in metrics.values()), unit_of(key).name] for key in keys]
    columns = [Column("metric"), *(Column(run, unit="unit") for run in metrics), Column("unit")]
    return Table("tests", columns, rows, f"test, {distance}")
