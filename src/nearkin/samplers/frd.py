"""Fréchet distance: the batch whose mean and covariance are those of a large batch.

    cost = ‖μ* - μ‖² + tr(Σ* + Σ - 2(Σ*Σ + ε·I)^½),    ε = 1e-8

of unit vectors, covariances with n - 1, * the big batch. Roth et al. 2020 (their root is numeric, its real part taken).

Σ*Σ is D x D, but at most min(B - 1, D) of its eigenvalues are not 0. With Y the centred big batch, K = YYᵀ and A the
rows of K that belong to the candidate, centred, they are the largest of the small AAᵀ/((b* - 1)(B - 1)); each of the
others adds √ε to the trace.
"""

import math

import numpy as np
import torch
from torch import Tensor

from nearkin.registry import SAMPLERS
from nearkin.samplers.candidates import CandidateSampler

EPSILON = 1e-8


@SAMPLERS.register("frd")
class FRD(CandidateSampler):
    """The candidate with the lowest Fréchet distance to a big batch.

    Guarantees: those of `CandidateSampler`."""

    source = "Roth et al. 2020"

    def costs(self, big: np.ndarray, picks: Tensor) -> Tensor:
        z = self.bank[big]                                                                      # (b*, D)
        y = z - z.mean(0)
        gram = y @ y.T                                                                          # (b*, b*)
        rows = gram[picks]                                                                      # (m, B, b*)
        within = rows.gather(2, picks[:, None, :].expand(-1, self.batch, -1))                   # (m, B, B)
        mean = within.mean((1, 2))                                  # ‖μ* - μ‖²: the big batch's mean is 0 now
        trace = (gram.diagonal()[picks].mean(1) - mean) * (self.batch / (self.batch - 1))       # tr Σ
        whole = gram.diagonal().sum() / (len(big) - 1)                                          # tr Σ*
        a = (rows - rows.mean(1, keepdim=True)).double()            # squared next: float32 would drown the small values
        product = a @ a.mT / ((len(big) - 1) * (self.batch - 1))                                # (m, B, B)
        rank = min(self.batch - 1, z.shape[1])                      # at most; the others are 0 but for rounding
        values = torch.linalg.eigvalsh(product)[:, -rank:].clamp(min=0)                         # (m, rank), ascending
        root = (values + EPSILON).sqrt().sum(1) + (z.shape[1] - rank) * math.sqrt(EPSILON)
        return mean + whole + trace - 2 * root
