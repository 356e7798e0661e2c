"""The objective of a spec: loss, miner and regulariser, with a method around them where one is set."""

from typing import Any

from nearkin.config.spec import RunSpec
from nearkin.engine.objective import Objective, build_objective
from nearkin.models import Model


def build(spec: RunSpec, model: Model, *, num_classes: int) -> Any:
    """An `Objective`, or a method, which offers the same."""

    def objective(dim: int) -> Objective:
        return build_objective(
            loss=(spec.loss.name, spec.loss.params),
            miner=(spec.miner.name, spec.miner.params) if spec.miner else None,
            regularisers=[(spec.regulariser.name, spec.regulariser.params)] if spec.regulariser else [],
            num_classes=num_classes,
            dim=dim,
        )

    if spec.method is None:
        return objective(model.dim)
    return spec.method.cls.around(objective, model, **spec.method.params)
