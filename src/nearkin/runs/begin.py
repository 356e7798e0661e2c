"""What a run begins from where that is computed from the training images: `model.init=pca`."""

import numpy as np
import torch

from nearkin.engine.batches import Source, seed_of
from nearkin.engine.distributed import ranks
from nearkin.engine.embed import embed
from nearkin.errors import NearkinError
from nearkin.models import LinearHead, Model

MOST = 4096  # training images that a head begins from: more than enough for the first 2,048 directions


def begin_head(model: Model, source: Source, rows: np.ndarray, seed: int, device: torch.device) -> None:
    """Set the head of a run that begins to the principal axes of its pooled features, where model.init=pca says so.

    At most `MOST` training images are embedded, not augmented, drawn by the seed of the run. All processes get the
    head that rank 0 computes.
    """
    head = model.head
    if not isinstance(head, LinearHead) or head.init != "pca":
        return
    with model.headless():
        features = embed(model, source, drawn(rows, seed), device, title="Features that the head begins from")  # (N, F)
    if not features.isfinite().all():
        raise NearkinError("model.init=pca: the network gives NaN or infinity for training images")
    head.begin(features)
    head.load_state_dict(ranks().share(lambda: {k: v.cpu() for k, v in head.state_dict().items()}))


def drawn(rows: np.ndarray, seed: int) -> np.ndarray:
    """At most `MOST` of the training rows, each as likely as any other, in their order."""
    if len(rows) <= MOST:
        return rows
    generator = torch.Generator().manual_seed(seed_of(seed, 0, 4))
    return rows[np.sort(torch.randperm(len(rows), generator=generator)[:MOST].numpy())]
