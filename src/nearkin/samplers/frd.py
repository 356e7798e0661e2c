"""Fréchet distance between a batch and a big batch."""

import math

import numpy as np
import torch
from torch import Tensor

from nearkin.registry import SAMPLERS
from nearkin.samplers.candidates import CandidateSampler

EPSILON = 1e-8


@SAMPLERS.register("frd")
class FRD(CandidateSampler):
    """Fréchet distance: the candidate whose mean and covariance are closest to those of a big batch.

        cost = ‖μ* - μ‖² + tr(Σ* + Σ - 2(Σ*Σ + ε·I)^½),    ε = 1e-8

    of unit vectors, covariances with n - 1, * the big batch. Guarantees: those of `CandidateSampler`.

    Σ*Σ is D x D, but at most min(B - 1, D) of its eigenvalues are not 0. With Y the centred big batch, K = YYᵀ and A
    the rows of K that belong to the candidate, centred, they are the largest of the small AAᵀ/((b* - 1)(B - 1)); each
    of the others adds √ε to the trace.

    Source: Roth et al. 2020 (their root is numeric, its real part taken).

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
        sampler = nearkin.samplers.FRD(labels, batch=4, seed=0)
        sampler.fill(embeddings)
        rows = sampler.next()
    """

    paper = "Roth et al. 2020"

    def costs(self, big: np.ndarray, picks: Tensor) -> Tensor:
        """The cost (m,) of the candidates picks (m, B) against the big batch (b*,); lower is better."""
        z = self.bank[big]  # (b*, D)
        y = z - z.mean(0)
        gram = y @ y.T  # (b*, b*)
        rows = gram[picks]  # (m, B, b*)
        within = rows.gather(2, picks[:, None, :].expand(-1, self.batch, -1))  # (m, B, B)
        mean = within.mean((1, 2))  # ‖μ* - μ‖²: the big batch's mean is 0 now
        trace = (gram.diagonal()[picks].mean(1) - mean) * (self.batch / (self.batch - 1))  # tr Σ
        big_trace = gram.diagonal().sum() / (len(big) - 1)  # tr Σ*
        a = (rows - rows.mean(1, keepdim=True)).double()  # squared next: float32 would lose the small values
        product = a @ a.mT / ((len(big) - 1) * (self.batch - 1))  # (m, B, B)
        rank = min(self.batch - 1, z.shape[1])  # at most; the others are 0 except for rounding
        values = torch.linalg.eigvalsh(product)[:, -rank:].clamp(min=0)  # (m, rank), ascending
        root = (values + EPSILON).sqrt().sum(1) + (z.shape[1] - rank) * math.sqrt(EPSILON)
        return mean + big_trace + trace - 2 * root
