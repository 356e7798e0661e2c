"""Runs as rows of a table: settings, state and figures, read from plain files. No import path of a spec is imported."""

import shlex
import time
from collections.abc import Mapping, Sequence
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

Where = Mapping[str, Any] | Sequence[str] | str  # a slice of runs: {"dim": [128, 512]} or "dim=128 dim=512"
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
# mostly filled in by nearkin: not shown
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
            done, tested = row["state"] in ("tested", "trial", "final"), row["state"] == "tested"
            more = {"hash": run.hash, "done": done, "verified": has_checksums(run), "result": None}
            more |= {"result": run.result} if tested else {}
            dicts.append({**{key: value for key, value in row.items() if key != "words"}, **more})
        return dicts


def find_runs(runs: Path | str = "runs", *, where: Where = (), sort: str | None = None) -> Listing:
    """All stored runs, or those that fit.

    Parameters:
        runs: the folder of the stored runs.
        where: setting -> value, or a list of values, as {"loss": "margin"}; or words, as "loss=margin".
        sort: a column, as "map_at_r": figures best first, others ascending.
    """
    stored = {run.hash: run for run in Store(runs).runs()}
    rows = select([row(run) for run in stored.values()], conditions(where), sort)
    return Listing(rows, stored, f"no such runs in {runs}" if where else f"no runs in {runs}")


def conditions(where: Where) -> dict[str, list[str]]:
    """Setting -> the values that it may have, as text, from a mapping or from KEY=VALUE words, in a list or a line."""
    if isinstance(where, Mapping):
        lists = {k: value if isinstance(value, list | tuple) else [value] for k, value in where.items()}
        return {key: [str(value) for value in values] for key, values in lists.items()}
    values: dict[str, list[str]] = {}
    for word in shlex.split(where) if isinstance(where, str) else where:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise NearkinError(f"where={word!r}: KEY=VALUE is needed, such as backbone=resnet50")
        values.setdefault(key, []).append(value)
    return values


def where_words(where: Where) -> list[str]:
    """The same slice as KEY=VALUE words."""
    return [f"{key}={value}" for key, values in conditions(where).items() for value in values]


def has_checksums(run: Run) -> bool:
    """Has it checksums? Of one whose list is damaged its state tells that."""
    try:
        return run.sums() is not None
    except NearkinError:
        return True


def row(run: Run) -> dict[str, Any]:
    """One run: state, data, loss, backbone, dim, seed, validation and test figures, age in seconds, and its words. A
    run that cannot be read is a row too, with the reason as its state."""
    columns: dict[str, Any] = {"run": run.hash, **dict.fromkeys(COLUMNS[1:]), "words": {}}
    try:
        words = flatten(run.stored)
        columns |= {
            "data": words.get("data.name"),
            "loss": words.get("loss.name"),
            "dim": words.get("model.dim"),
            "backbone": words.get("model.backbone"),
            "seed": words.get("train.seed"),
        }
        if words.get("train.epochs") == 0:
            columns["loss"] = "(untrained)"
        columns |= {"words": words, "age": round(time.time() - (run.path / "spec.yaml").stat().st_mtime)}
        columns |= {"state": state(run)} | _figures(run)
    except (NearkinError, OSError, LookupError, TypeError, AttributeError, ValueError) as error:
        reason = str(error) if isinstance(error, NearkinError) else f"damaged ({type(error).__name__}: {error})"
        columns["state"] = reason.removeprefix(f"run {run.hash} ").removeprefix("is ")
    return columns


def state(run: Run) -> str:
    """In words: tested; final, untested; trial; failed and why; or begun and how far."""
    if run.tested:
        return "tested"
    if run.final:
        return "trial" if run.purpose == "trial" else "final, untested" if run.testable else "final"
    if (why := run.failure) is not None:
        return f"failed: {why}"
    lines = read_log(run.path / "log.jsonl")
    if not lines:
        return "begun"
    return f"begun {place(lines[-1].get('epoch', lines[-1].get('epoch_end')), lines[-1]['epochs'])}"


def place(epoch: Any, epochs: Any) -> str:
    """How far training is: `3/8`, or `warm-up` before the first epoch."""
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
    """A stored spec in short: the settings that differ from the defaults."""
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


def select(rows: list[dict[str, Any]], where: Mapping[str, list[str]], sort: str | None) -> list[dict[str, Any]]:
    """The rows whose words have these values, sorted by a column: figures best first, others ascending."""
    wanted = {ALIASES.get(key, key): values for key, values in where.items()}
    known = {key for row in rows for key in row["words"]}
    for key in wanted:
        if rows and key not in known:
            raise NearkinError(f"where={key}: no stored run has it; {choices(key, known | set(ALIASES))}")
    selected = [row for row in rows if all(str(row["words"].get(k)) in values for k, values in wanted.items())]
    if sort is None:
        return selected
    if sort not in COLUMNS:
        raise NearkinError(f"sort={sort}: {choices(sort, COLUMNS)}")
    figures = sort.endswith(("map_at_r", "recall@1"))
    present = [row for row in selected if row[sort] is not None]
    absent = [row for row in selected if row[sort] is None]
    return sorted(present, key=lambda row: row[sort], reverse=figures) + absent
