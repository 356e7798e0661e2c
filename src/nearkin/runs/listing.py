"""Runs as rows of a table: settings, state and figures, read from plain files. No import path of a spec is imported."""

import time
from typing import Any

from nearkin.config import identity
from nearkin.config.parse import flatten
from nearkin.config.parts import REGISTRIES
from nearkin.config.spec import ALIASES, UNHASHED, RunSpec
from nearkin.errors import NearkinError, choices
from nearkin.runs.log import read_log
from nearkin.runs.store import Run

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
        return "trial" if run.purpose == "trial" else "final, untested"
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


def select(rows: list[dict[str, Any]], where: dict[str, Any], sort: str | None) -> list[dict[str, Any]]:
    """The rows whose words have these values, sorted by a column: figures best first, others ascending."""
    conditions = {ALIASES.get(key, key): value for key, value in where.items()}
    known = {key for row in rows for key in row["words"]}
    for key in conditions:
        if rows and key not in known:
            raise NearkinError(f"--where {key}: no stored run has it; {choices(key, known | set(ALIASES))}")
    selected = [row for row in rows if all(str(row["words"].get(k)) == str(v) for k, v in conditions.items())]
    if sort is None:
        return selected
    if sort not in COLUMNS:
        raise NearkinError(f"--sort {sort}: {choices(sort, COLUMNS)}")
    figures = sort.endswith(("map_at_r", "recall@1"))
    present = [row for row in selected if row[sort] is not None]
    absent = [row for row in selected if row[sort] is None]
    return sorted(present, key=lambda row: row[sort], reverse=figures) + absent
