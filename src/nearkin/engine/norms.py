"""BatchNorm under weights that were never trained: averaged or blended ones need statistics of their own."""

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from nearkin.engine.batches import Source
from nearkin.engine.embed import BATCH, run
from nearkin.models import Model

BATCHES = 32  # at most, from which the statistics are measured


@torch.no_grad()
def measure_statistics(model: Model, source: Source, rows: np.ndarray, device: torch.device) -> None:
    """Measure mean and variance of every BatchNorm that trains anew, as the plain mean over batches of training images,
    which are drawn evenly from all rows and not augmented. Where their statistics are frozen nothing changes."""
    was_training = model.training
    norms = [module for module in model.train().modules() if isinstance(module, _BatchNorm) and module.training]
    model.eval()  # no dropout
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean
    count = max(1, min(BATCHES, len(rows) // BATCH)) if norms else 0
    try:
        for start in range(count):  # every count-th row: images of one class often stand together
            run(model, source.test(rows[start::count][:BATCH]).to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)
