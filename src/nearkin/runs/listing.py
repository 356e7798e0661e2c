"""Runs as rows: what they are and how far they are, read from plain files. Nothing that a spec names is imported."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin.config import identity
from nearkin.config.parse import flatten
from nearkin.config.parts import REGISTRIES
from nearkin.config.spec import ALIASES, UNHASHED, RunSpec
from nearkin.errors import NearkinError, choices
from nearkin.present import Column, Shown, Table
from nearkin.runs.log import read_log
from nearkin.runs.store import Run, Store
from nearkin.units import AGE, SHARE

COLUMNS = (
    "run",
    "state",
    "data",
    "loss",
    "backbone",
    "dim",
    "seed",
    "validation map_at_r",
    "map_at_r",
    "recall@1",
    "age",
)
FIGURES = ("validation map_at_r", "map_at_r", "recall@1")
SHARED = ("data", "backbone", "dim", "seed")  # columns that stand above the table where all runs have the same value
# filled in by nearkin, mostly: not worth a word
QUIET = {
    "data.size",
    "data.crop",
    "data.resize",
    "model.freeze_bn",
    "model.pool",
    "sampler.name",
    "train.batch",
    "train.lr",
}


class Listing(Shown):
    """Stored runs as a table.

    Parameters:
        rows: one per run, as `row` has them.
        stored: hash -> run.
        nothing: what to say where there are no runs.
    """

    def __init__(self, rows: list[dict[str, Any]], stored: Mapping[str, Run], nothing: str):
        self.rows, self.nothing = rows, nothing
        self.runs = [stored[row["run"]] for row in rows]

    @property
    def words(self) -> list[str]:
        """That there is nothing."""
        return [] if self.rows else [self.nothing]

    @property
    def tables(self) -> list[Table]:
        """One row per run. What is the same in all of them stands above."""
        rows, names = self.rows, [name for name in COLUMNS if name not in FIGURES and name != "age"]
        common = [key for key in SHARED if len(rows) > 1 and len({row[key] for row in rows}) == 1]
        title = "all: " + " ".join(f"{key}={rows[0][key]}" for key in common) if common else ""
        columns = [Column(name) for name in names if name not in common]
        columns += [*(Column(name, unit=SHARE) for name in FIGURES), Column("age", unit=AGE)]
        values = [[row[column.name] for column in columns] for row in rows]
        return [Table("runs", columns, values, title)]

    @property
    def below(self) -> list[str]:
        """How many have no checksums."""
        bare = sum(not has_checksums(run) for run in self.runs)
        words = f"{bare} of {len(self.runs)} runs are unverified: they were stored without checksums"
        return [words] if bare else []

    def to_dicts(self) -> list[dict[str, Any]]:
        """Every run as plain values, its result among them."""
        dicts = []
        for row, run in zip(self.rows, self.runs, strict=True):
            done, tested = row["state"] in ("tested", "trial"), row["state"] == "tested"
            more = {"hash": run.hash, "done": done, "verified": has_checksums(run), "result": None}
            more |= {"result": run.result} if tested else {}
            dicts.append({**{key: value for key, value in row.items() if key != "words"}, **more})
        return dicts


def find_runs(runs: Path | str = "runs", *, where: Mapping[str, Any] | None = None, sort: str | None = None) -> Listing:
    """All stored runs, or those that fit.

    Parameters:
        runs: the folder of the stored runs.
        where: setting -> value, as {"loss": "margin"}.
        sort: a column, as "map_at_r": figures best first, others ascending.
    """
    stored = {run.hash: run for run in Store(runs).runs()}
    rows = select([row(run) for run in stored.values()], dict(where or {}), sort)
    return Listing(rows, stored, f"no such runs in {runs}" if where else f"no runs in {runs}")


def has_checksums(run: Run) -> bool:
    """Has it checksums? Of one whose list is damaged its state tells that."""
    try:
        return run.sums() is not None
    except NearkinError:
        return True


def row(run: Run) -> dict[str, Any]:
    """One run: state, data, loss, backbone, dim, seed, validation and test figures, age in seconds, and its words. A
    run that cannot be read is a row too, with the reason as its state."""
    told: dict[str, Any] = {"run": run.hash, **dict.fromkeys(COLUMNS[1:]), "words": {}}
    try:
        words = flatten(run.stored)
        told |= {
            "data": words.get("data.name"),
            "loss": words.get("loss.name"),
            "dim": words.get("model.dim"),
            "backbone": words.get("model.backbone"),
            "seed": words.get("train.seed"),
        }
        if words.get("train.epochs") == 0:
            told["loss"] = "(untrained)"
        told |= {"words": words, "age": round(time.time() - (run.path / "spec.yaml").stat().st_mtime)}
        told |= {"state": state(run)} | _figures(run)
    except (NearkinError, OSError, LookupError, TypeError, AttributeError, ValueError) as error:
        reason = str(error) if isinstance(error, NearkinError) else f"damaged ({type(error).__name__}: {error})"
        told["state"] = reason.removeprefix(f"run {run.hash} ").removeprefix("is ")
    return told


def state(run: Run) -> str:
    """tested; final, untested; a trial; failed and why; begun and how far."""
    if run.tested:
        return "tested"
    if run.final:
        return "trial" if run.purpose == "trial" else "final, untested"
    if (why := run.failure) is not None:
        return f"failed: {why}"
    lines = read_log(run.path / "log.jsonl")
    if not lines:
        return "begun"
    return f"begun {place(lines[-1].get('epoch', lines[-1].get('epoch_end')), lines[-1]['epochs'])}"


def place(epoch: Any, epochs: Any) -> str:
    """Where a training stands: `3/8`, or `warm-up` in epochs before the first."""
    return "warm-up" if isinstance(epoch, int) and epoch < 1 else f"{epoch}/{epochs}"


def _figures(run: Run) -> dict[str, Any]:
    if not run.final:
        return {}
    test = run.metrics()
    validation = run.read_json("final.json")["validation"]
    return {
        "validation map_at_r": validation.get("map_at_r"),
        "map_at_r": test.get("map_at_r"),
        "recall@1": test.get("recall@1"),
    }


def describe(stored: dict[str, Any]) -> str:
    """A stored spec in a few words: what differs from the defaults."""
    words = flatten(stored)
    known = {part: r[words[f"{part}.name"]] for part, r in REGISTRIES.items() if words.get(f"{part}.name") in r}
    shown: dict[str, Any] = {key: words[key] for key in ("data.name", "model.backbone", "loss.name") if key in words}
    changed = identity.changes(words, RunSpec, known, UNHASHED)
    shown |= {k: v for k, v in changed.items() if k not in QUIET and v is not None}
    return " ".join(f"{k.removesuffix('.name')}={v}" for k, v in shown.items())


def title(run: Run) -> str:
    """A run in one line, whatever its state."""
    try:
        return f"{state(run)}: {describe(run.stored)}"
    except NearkinError as error:
        return str(error)


def select(rows: list[dict[str, Any]], where: dict[str, Any], sort: str | None) -> list[dict[str, Any]]:
    """The rows whose words have these values, sorted by a column: figures best first, others ascending."""
    wanted = {ALIASES.get(key, key): value for key, value in where.items()}
    known = {key for each in rows for key in each["words"]}
    for key in wanted:
        if rows and key not in known:
            raise NearkinError(f"where={key}: no stored run has it; {choices(key, known | set(ALIASES))}")
    kept = [each for each in rows if all(str(each["words"].get(k)) == str(v) for k, v in wanted.items())]
    if sort is None:
        return kept
    if sort not in COLUMNS:
        raise NearkinError(f"sort={sort}: {choices(sort, COLUMNS)}")
    figures = sort.endswith(("map_at_r", "recall@1"))
    present = [each for each in kept if each[sort] is not None]
    absent = [each for each in kept if each[sort] is None]
    return sorted(present, key=lambda each: each[sort], reverse=figures) + absent
