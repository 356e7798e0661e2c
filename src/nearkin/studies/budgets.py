"""Equal budgets: a comparison whose rows were not given the same says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin.errors import and_more
from nearkin.runs.run import Run

# what rows are compared by, in the order in which it is told
BUDGET = (
    "trials",
    "epochs",
    "steps",
    "images seen",
    "network",
    "size",
    "seeds",
    "folds",
    "selection",
    "stored weights",
)


def budget_of(
    runs: list[Run], seeds: int, folds: int, *, joined: bool = False, trials: int = 0, searched_epochs: int = 0
) -> dict[str, str]:
    """What one row of a comparison was given, in words; empty for untrained networks and unfinished rows. Joined folds
    have as many times the size; `trials` are those of the search that chose the row's settings, `searched_epochs` what
    they were trained for, all together."""
    finals = [run.read_json("final.json") for run in runs]
    if not any(final["epochs_trained"] for final in finals):
        return {}
    specs = [run.stored for run in runs]
    times = folds if joined else 1
    size = {str(times * spec["model"]["dim"]) if spec["model"]["head"] != "none" else "pooled" for spec in specs}
    return {
        "trials": f"{trials} of {searched_epochs:,} epochs in all" if searched_epochs else str(trials),
        "epochs": _all(str(spec["train"]["epochs"]) for spec in specs),
        "steps": _all(f"{final['steps']:,}" for final in finals),
        "images seen": _all(
            f"{final['steps'] * spec['train']['batch']:,}" for final, spec in zip(finals, specs, strict=True)
        ),
        "network": _all(_network(spec) for spec in specs),
        "size": _all(size),
        "seeds": str(seeds),
        "folds": str(folds),
        "selection": _all(final["rule"] + (f" by {final['select']}" if final["select"] else "") for final in finals),
        "stored weights": _all(_stored(spec["train"]) for spec in specs),
    }


def unequal(budgets: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One sentence for each thing that rows differ in. `budgets` is name of a row -> what it was given."""
    given = {name: budget for name, budget in budgets.items() if budget}
    words = {key: differing({name: budget[key] for name, budget in given.items()}) for key in BUDGET}
    return [f"unequal {key}: {text}" for key, text in words.items() if text]


def differing(values: Mapping[str, str]) -> str:
    """`5 (triplet, margin); 3 (contrastive)`: which rows have which value; empty where all have the same."""
    names: dict[str, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    return "; ".join(f"{value} ({and_more(rows, 3)})" for value, rows in names.items()) if len(names) > 1 else ""


def _network(spec: Mapping[str, Any]) -> str:
    model, size = spec["model"], spec["data"]["size"]
    weights = Path(model["weights"]).name if model.get("weights") else "random weights"
    cut = f", cut {model['cut']}" if model.get("cut", "none") != "none" else ""
    return f"{model['backbone']}, {weights}{cut}, {size} px"


def _stored(train: Mapping[str, Any]) -> str:
    """Which weights a run stores: averaged over its steps, blended with its first ones, or as they were trained."""
    words = [f"averaged {train['average']:g}"] if train.get("average") else []
    words += [f"blended {train['blend']}"] if train.get("blend", 1) != 1 else []
    return ", ".join(words) or "as trained"


def _all(values: Any) -> str:
    """The one value, or the least and the largest: seeds of a row may have stopped at different steps."""
    ordered = sorted(set(values), key=lambda text: (len(text), text))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
