"""Random triplets."""

import torch
from torch import Generator

from nearkin.miners.base import Miner, one_per_anchor
from nearkin.numerics import drawn, generator_device
from nearkin.pairs import Pairs, Triplets, draw_one
from nearkin.registry import MINERS


@MINERS.register("random")
class Random(Miner):
    """Random triplets: as many as there are anchors, drawn uniformly from all triplets of the batch.

    No triplet is drawn twice. An anchor may occur several times or never; if the batch has fewer triplets, all are
    taken.

    Source: Roth et al. 2020, as in their code; their text gives every sample one positive and one negative.

    Parameters:
        per_anchor: True draws one triplet for every anchor that has a positive and a negative, both uniform, as that
            text has it.

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,), T ≤ B.

    Example:
        tuples = nearkin.miners.Random()(embeddings, labels)
        value = nearkin.losses.Triplet()(embeddings, labels, tuples)
    """

    gives = Triplets
    paper = "Roth et al. 2020"

    def __init__(self, *, per_anchor: bool = False):
        self.per_anchor = per_anchor

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """B different triplets, or all if there are fewer, or one per anchor; drawn with the generator.

        Triplet number t is found by arithmetic, so that the list of B·P·N triplets is never built: anchors have
        consecutive ranges of |P_a|·|N_a| numbers, and inside a range p and n are quotient and remainder.
        """
        if self.per_anchor:
            return one_per_anchor(pairs, draw_one(pairs.positive, generator), draw_one(pairs.negative, generator))
        positives, negatives = pairs.positive.sum(1), pairs.negative.sum(1)  # (B,)
        ends = (positives * negatives).cumsum(0)  # (B,)
        total = int(ends[-1]) if len(ends) else 0
        chosen = _distinct(total, min(len(pairs.z), total), generator, ends.device)  # (T,)
        anchor = torch.searchsorted(ends, chosen, right=True)
        offset = chosen - (ends[anchor] - (positives * negatives)[anchor])
        p, n = offset // negatives[anchor], offset % negatives[anchor]
        return Triplets(anchor, _nth(pairs.positive, anchor, p), _nth(pairs.negative, anchor, n))


def _distinct(total: int, count: int, generator: Generator | None, device: torch.device) -> torch.Tensor:
    """`count` different numbers below `total`, in random order, without a permutation of all of them."""
    if total <= 4 * count:
        return drawn(torch.randperm, total, generator=generator, device=device)[:count]
    draw_device = generator_device(device) if generator is None else generator.device
    chosen = torch.empty(0, dtype=torch.long, device=draw_device)
    while len(chosen) < count:
        more = drawn(torch.randint, total, (2 * count,), generator=generator, device=draw_device)
        order = torch.cat([chosen, more])
        different, first = torch.unique(order, return_inverse=True)
        seen = torch.full((len(different),), len(order), device=draw_device).scatter_reduce_(
            0, first, torch.arange(len(order), device=draw_device), "amin"
        )
        chosen = order[seen.sort().values]  # first occurrences, in order of drawing
    return chosen[:count].to(device)


def _nth(mask: torch.Tensor, row: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """The column of the n-th True of each given row."""
    return torch.searchsorted(mask.cumsum(1)[row], n[:, None] + 1)[:, 0]
