"""From the rows of a source to their embeddings."""

import numpy as np
import torch
from torch import Tensor

from nearkin.engine.allocator import skip_memory_fill
from nearkin.engine.batches import Source
from nearkin.engine.distributed import SyncedBatchNorm, ranks
from nearkin.models import Model
from nearkin.models.fold import NORMS, folded
from nearkin.progress import track

BATCH = 64  # larger ones are no faster, and take more memory


@torch.no_grad()
def embed(
    model: Model, source: Source, rows: np.ndarray, device: torch.device, *, title: str = "", fold: bool = True
) -> Tensor:
    """Raw embeddings (N, D) of N rows of a source, in eval mode. Processes share the work by whole batches, so that the
    numbers are those of one process.

    Parameters:
        model: it is left unchanged, including its mode.
        source: where the inputs of rows come from.
        rows: (N,) rows of the source.
        device: where it is computed.
        title: of the progress bar; empty: no bar.
        fold: fold BatchNorm into the convolutions, which is faster and changes the last digits; False: compute as
            training does.
    """
    here = ranks()
    was_training = model.training
    model.eval()
    try:
        with skip_memory_fill():
            network = model
            if fold and len(rows) > BATCH:  # folding takes as long as it saves on one batch
                probe = source.test(rows[:1]).to(device)  # the same for all processes
                network = folded(model, lambda network: run(network, probe), norms=(*NORMS, SyncedBatchNorm))
            starts = list(range(0, len(rows), BATCH))
            mine = starts[here.mine(len(starts))]
            watched = track(mine, title, len(mine)) if title and here.first else mine
            batches = [run(network, source.test(rows[i : i + BATCH]).to(device)) for i in watched]
    finally:
        model.train(was_training)
    z = torch.cat(batches) if batches else torch.empty(0, model.dim, device=device)  # (n, D)
    sizes = [sum(len(rows[i : i + BATCH]) for i in starts[part]) for part in here.slices(len(starts))]
    return here.gather(z, sizes).cpu()  # (N, D)


def run(model: Model, x: Tensor) -> Tensor:
    """Raw embeddings (B, D) float32 of inputs as a source gives them: images, or features where the model is cut."""
    return (model if model.cut == "none" else model.back)(x).z.float()
