"""A fit as it was stored: by its name, or by the model that it ended with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin.errors import NearkinError
from nearkin.fitting.fitted import Fitted
from nearkin.runs.store import Run, Store
from nearkin.storage import without_sum


def stored_fit(name: str, store: Store) -> Fitted | None:
    """The fit of that name, or the one whose model is the run of that name, path or hash; None: there is no such fit.

    An error where it has not come to its end, or where the runs that it rests on are gone.
    """
    file = store.root / "studies" / name / "fit.json"
    if name and file.is_file():
        try:
            state = without_sum(json.loads(file.read_text()))
        except (OSError, ValueError) as error:
            raise NearkinError(f"{file} is damaged: run the same nearkin fit again, which writes it anew") from error
        if "estimate" not in state:
            raise NearkinError(f"{name} has not come to its end: the same nearkin fit goes on")
        return _of(state["estimate"], store.run(state["model"]))
    if not Path(name).is_dir() and not any(run.hash.startswith(name) for run in store.runs()):
        return None
    try:
        run = store.find(name)
        estimate = run.read_json("estimate.json") if run.has("estimate.json") else None
    except NearkinError:  # no run, or a damaged one: whoever looks next says so
        return None
    return None if estimate is None else _of(estimate, run)


def _of(estimate: Mapping[str, Any], run: Run) -> Fitted:
    try:
        return Fitted.of(estimate, run)
    except (KeyError, TypeError) as error:
        raise NearkinError(f"the estimate of run {run.hash} is damaged: run the same nearkin fit again") from error
