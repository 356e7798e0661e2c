"""From the rows of a source to their embeddings."""

import numpy as np
import torch
from torch import Tensor

from nearkin.engine.batches import Source
from nearkin.engine.distributed import ranks
from nearkin.models import Model
from nearkin.progress import track

BATCH = 256


@torch.no_grad()
def embed(model: Model, source: Source, rows: np.ndarray, device: torch.device, *, title: str = "") -> Tensor:
    """Raw embeddings (N, D) of N rows of a source, in eval mode. Processes share the work by whole batches, so that the
    numbers are those of one process. With a `title` it shows its progress."""
    was_training = model.training
    model.eval()
    forward = model if model.cut == "none" else model.back
    here = ranks()
    starts = list(range(0, len(rows), BATCH))
    mine = starts[here.mine(len(starts))]
    watched = track(mine, title, len(mine)) if title and here.first else mine
    batches = [forward(source.test(rows[i : i + BATCH]).to(device)).z.float() for i in watched]
    model.train(was_training)
    z = torch.cat(batches) if batches else torch.empty(0, model.dim, device=device)             # (n, D)
    sizes = [sum(len(rows[i : i + BATCH]) for i in starts[each]) for each in here.slices(len(starts))]
    return here.gather(z, sizes).cpu()                                                          # (N, D)
