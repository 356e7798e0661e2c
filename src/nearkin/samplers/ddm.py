"""Distance-distribution matching."""

import numpy as np
import torch
from torch import Tensor

from nearkin.registry import SAMPLERS
from nearkin.samplers.candidates import CandidateSampler

BINS = 50
WEIGHT = 75.0


@SAMPLERS.register("ddm")
class DDM(CandidateSampler):
    """Distance-distribution matching: the candidate whose mean, spread and distances are closest to those of a big
    batch.

        cost = ‖μ* - μ‖ + ‖σ* - σ‖ + 75·2·W₁(h*, h)

    μ, σ: mean and standard deviation (n - 1) of each dimension of the unit vectors; h: the histogram of all pairwise
    distances in 50 bins over the range of the big batch's; *: the big batch. W₁ = width·Σ_k |F*_k - F_k| with F the
    cumulated histograms: both put their mass on the bin centres. Guarantees: those of `CandidateSampler`.

    Source: Roth et al. 2020, who compute W₁ both ways and add, hence the 2. (Their code hands the bin heights to the
    Wasserstein routine as if they were samples; the formula here is what the text means.)

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        per_class: n, images per class in a group; at least 1, and it must divide the batch.
        big_batch: b*, images in the big batch; at least the batch.
        candidates: m, candidates per batch; at least 1.
        refresh: True overwrites the bank's rows of a batch by its fresh embeddings after every step; False keeps the
            first ones.

    Shapes: labels (N,), embeddings (N, D); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.DDM(labels, batch=4, seed=0)
        sampler.fill(embeddings)
        rows = sampler.next()
    """

    paper = "Roth et al. 2020"

    def costs(self, big: np.ndarray, picks: Tensor) -> Tensor:
        """The cost (m,) of the candidates picks (m, B) against the big batch (b*,); lower is better."""
        z = self.bank[big]  # (b*, D)
        z = z - z.mean(0)  # centred: distances of close vectors stay exact
        parts = z[picks]  # (m, B, D)
        mean = parts.mean(1)  # the big batch's is 0 now
        var = (parts - mean[:, None]).square().sum(1) / (self.batch - 1)  # several times faster than var(1)
        moments = mean.norm(dim=1) + (var.sqrt() - z.std(0)).norm(dim=1)  # (m,)
        d = distances(z, big)  # (b*, b*)
        i, j = _upper(len(big))
        low, high = d[i, j].aminmax()
        width = ((high - low) / BINS).clamp(min=1e-12)
        # an image drawn twice has distance 0 to itself: it counts in the lowest bin even if the range begins above 0
        bins = ((d - low) / width).clamp_(0, BINS - 1).long()  # (b*, b*)
        target = torch.bincount(bins[i, j], minlength=BINS) / len(i)  # (BINS,)
        i, j = _upper(self.batch)
        offset = BINS * torch.arange(len(picks))[:, None]
        pair_bins = bins[picks[:, i], picks[:, j]] + offset  # (m, B(B-1)/2)
        heights = torch.bincount(pair_bins.flatten(), minlength=BINS * len(picks)).view(-1, BINS) / len(i)
        w1 = width * (heights - target).cumsum(1).abs().sum(1)  # (m,)
        return moments + 2 * WEIGHT * w1


def distances(z: Tensor, rows: np.ndarray) -> Tensor:  # (b*, D), (b*,) -> (b*, b*)
    """Euclidean distances (b*, b*) of all vectors z (b*, D); `rows` (b*,) are the images that they belong to.

    An image that occurs twice has distance 0 to itself exactly.
    """
    square = z.square().sum(1)
    d = torch.addmm(square[:, None] + square, z, z.T, alpha=-2).clamp_(min=0).sqrt_()
    return d.masked_fill_(torch.from_numpy(rows[:, None] == rows), 0)  # by index: a difference is rounded


def _upper(n: int) -> Tensor:
    return torch.triu_indices(row=n, col=n, offset=1)  # (2, n(n-1)/2)
