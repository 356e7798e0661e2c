"""Distance-distribution matching: the batch whose distances are spread as those of a large batch.

    cost = ‖μ* - μ‖ + ‖σ* - σ‖ + 75·2·W₁(h*, h)

μ, σ: mean and standard deviation (n - 1) of each dimension of the unit vectors; h: the histogram of all pairwise
distances in 50 bins over the range of the big batch's; *: the big batch. W₁ = width·Σ_k |F*_k - F_k| with F the
cumulated histograms: both put their mass on the bin centres. Roth et al. 2020 compute it both ways and add, hence 2.
(Their code hands the bin heights to the Wasserstein routine as if they were samples; this is what the text means.)
"""

import numpy as np
import torch
from torch import Tensor

from nearkin.registry import SAMPLERS
from nearkin.samplers.candidates import CandidateSampler

BINS = 50
WEIGHT = 75.0


@SAMPLERS.register("ddm")
class DDM(CandidateSampler):
    """The candidate whose mean, spread and distances are nearest those of a big batch.

    Guarantees: those of `CandidateSampler`."""

    source = "Roth et al. 2020"

    def costs(self, big: np.ndarray, picks: Tensor) -> Tensor:
        z = self.bank[big]                                                                      # (b*, D)
        z = z - z.mean(0)                                           # distances keep their digits when z is bunched
        parts = z[picks]                                                                        # (m, B, D)
        mean = parts.mean(1)                                        # the big batch's is 0 now
        var = (parts - mean[:, None]).square().sum(1) / (self.batch - 1)        # several times faster than var(1)
        moments = mean.norm(dim=1) + (var.sqrt() - z.std(0)).norm(dim=1)                        # (m,)
        d = distances(z, big)                                                                   # (b*, b*)
        i, j = _upper(len(big))
        low, high = d[i, j].aminmax()
        width = ((high - low) / BINS).clamp(min=1e-12)
        # an image drawn twice has distance 0 to itself: the lowest bin, also where the range begins higher
        bins = ((d - low) / width).clamp_(0, BINS - 1).long()                                   # (b*, b*)
        target = torch.bincount(bins[i, j], minlength=BINS) / len(i)                            # (BINS,)
        i, j = _upper(self.batch)
        offset = BINS * torch.arange(len(picks))[:, None]
        found = bins[picks[:, i], picks[:, j]] + offset                                         # (m, B(B-1)/2)
        heights = torch.bincount(found.flatten(), minlength=BINS * len(picks)).view(-1, BINS) / len(i)
        w1 = width * (heights - target).cumsum(1).abs().sum(1)                                  # (m,)
        return moments + 2 * WEIGHT * w1


def distances(z: Tensor, rows: np.ndarray) -> Tensor:               # (b*, D), (b*,) -> (b*, b*)
    square = z.square().sum(1)
    d = torch.addmm(square[:, None] + square, z, z.T, alpha=-2).clamp_(min=0).sqrt_()
    return d.masked_fill_(torch.from_numpy(rows[:, None] == rows), 0)           # by index, not as a rounded difference


def _upper(n: int) -> Tensor:
    return torch.triu_indices(row=n, col=n, offset=1)                                           # (2, n(n-1)/2)
