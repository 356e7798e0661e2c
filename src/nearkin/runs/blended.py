"""The network that a run with `train.blend` stores: on the line from its first weights to the trained ones."""

from collections.abc import Callable
from typing import Any

import torch

from nearkin.engine.batches import Source
from nearkin.engine.blend import Line, best
from nearkin.engine.distributed import ranks
from nearkin.engine.norms import measure_statistics
from nearkin.evaluation.metrics.base import metric_of
from nearkin.models import Model
from nearkin.runs.prepare import Prepared
from nearkin.runs.run import FIRST, Run


def first_weights(run: Run, model: Model) -> dict[str, torch.Tensor]:
    """The weights that the network began with; stored, because what they came from may have been computed."""
    here = ranks()
    state = here.share(lambda: run.load(FIRST))
    if state is None:
        if here.share(lambda: run.begun):
            raise run.damaged(f"{FIRST} is missing; `nearkin runs rm {run.hash}` and train again")
        state = {"model": {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}}
        if here.first:
            run.save(FIRST, state)
    return state["model"]


def blend(
    run: Run,
    prepared: Prepared,
    model: Model,
    first: dict[str, torch.Tensor],
    chosen: str,
    source: Source,
    validate: Callable[[Model], dict[str, float]] | None,
    device: torch.device,
) -> dict[str, Any]:
    """Give the model the blend of its first weights and those of the chosen epoch. Returns what final.json says about
    it; with `auto`, validation on the way decides."""
    train = prepared.spec.train
    trained = ranks().share(lambda: run.load(chosen))
    assert trained is not None
    rows = prepared.split.train
    line = Line(model, first, trained["model"], statistics=lambda: measure_statistics(model, source, rows, device))
    if train.blend != "auto":
        line.go_to(float(train.blend or 0))
        return {"blend": train.blend} | ({"validation": validate(model)} if validate else {})
    assert validate is not None  # runs/prepare.py has looked
    metrics = line.measured(validate)
    sign = metric_of(train.select).sign or 1
    a = best({a: sign * values[train.select] for a, values in metrics.items()})
    line.go_to(a)
    tried = [{"a": a, **values} for a, values in metrics.items()]
    return {"blend": a, "validation": metrics[a], "blends": tried}
