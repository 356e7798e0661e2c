"""Equal budgets: a comparison whose rows were not given the same says so."""

from collections.abc import Mapping
from typing import Any

from nearkin.errors import some
from nearkin.runs.run import Run

# what rows are compared by, in the order in which it is told
BUDGET = ("trials", "epochs", "steps", "images seen", "network", "size", "seeds", "folds", "selection")


def budget_of(runs: list[Run], seeds: int, folds: int) -> dict[str, str]:
    """What one row of a comparison was given, in words; empty for untrained networks and unfinished rows."""
    told = [run.read_json("final.json") for run in runs]
    if not told or not any(each["epochs_trained"] for each in told):
        return {}
    specs = [run.stored for run in runs]
    size = {str(spec["model"]["dim"]) if spec["model"]["head"] != "none" else "pooled" for spec in specs}
    return {
        "trials": _all(str(each.get("trials", 0)) for each in told),
        "epochs": _all(str(spec["train"]["epochs"]) for spec in specs),
        "steps": _all(f"{each['steps']:,}" for each in told),
        "images seen": _all(f"{each['steps'] * spec['train']['batch']:,}"
                            for each, spec in zip(told, specs, strict=True)),
        "network": _all(_network(spec["model"]) for spec in specs),
        "size": _all(size),
        "seeds": str(seeds),
        "folds": str(folds),
        "selection": _all(each["rule"] + (f" by {each['select']}" if each["select"] else "") for each in told),
    }  # fmt: skip


def unequal(budgets: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One sentence for each thing that rows differ in. `budgets` is name of a row -> what it was given."""
    given = {name: budget for name, budget in budgets.items() if budget}
    found = []
    for key in BUDGET:
        groups: dict[str, list[str]] = {}
        for name, budget in given.items():
            groups.setdefault(budget[key], []).append(name)
        if len(groups) > 1:
            words = "; ".join(f"{value} ({some(names, 3)})" for value, names in groups.items())
            found.append(f"unequal {key}: {words}")
    return found


def _network(model: Mapping[str, Any]) -> str:
    weights = "random weights" if model["weights"] is None else "given weights"
    return f"{model['backbone']}, {weights}" + (f", cut {model['cut']}" if model.get("cut", "none") != "none" else "")


def _all(values: Any) -> str:
    """The one value, or all that there are: a row whose seeds stopped at different steps has several."""
    return " to ".join(dict.fromkeys(sorted(values, key=lambda text: (len(text), text))))
