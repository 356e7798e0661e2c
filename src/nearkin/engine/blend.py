"""Blending: on the straight line from the first weights of a network to the trained ones.

    θ(a) = θ0 + a (θ1 - θ0)          a = 0: the network as it began; a = 1: as it was trained

A pretrained network knows more than its training images can teach it, and forgets some of it while it learns them. What
lies between often retrieves better than both ends. Source: Wortsman et al. 2022, WiSE-FT.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nearkin.models import Model

GRID = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0)  # the values of a that `train.blend=auto` tries
State = Mapping[str, Tensor]
Metrics = dict[str, float]


@dataclass(frozen=True)
class Line:
    """The line between two states of one network.

    Parameters:
        model: the network.
        first: θ0, its state as it began.
        last: θ1, its state as it was trained.
        statistics: measures those of BatchNorm anew for the weights that the network has now.
    """

    model: Model
    first: State
    last: State
    statistics: Callable[[], None]

    @torch.no_grad()
    def go_to(self, a: float) -> None:
        """Give the network the weights θ(a). Whole numbers (counters) are those of θ1."""

        def between(name: str) -> Tensor:
            if a == 1 or not self.last[name].is_floating_point():
                return self.last[name]
            return self.first[name] if a == 0 else torch.lerp(self.first[name], self.last[name], a)

        self.model.load_state_dict({name: between(name) for name in self.last})
        if 0 < a < 1:  # both ends have statistics of their own
            self.statistics()

    def measured(self, measure: Callable[[Model], Metrics], grid: Sequence[float] = GRID) -> dict[float, Metrics]:
        """a -> what is measured of θ(a), for every a of a grid."""
        values = {}
        for a in grid:
            self.go_to(a)
            values[a] = measure(self.model)
        return values


def best(scores: Mapping[float, float]) -> float:
    """The a with the highest score; of equal ones that in the middle of the line, because the ends are the riskier
    choice."""
    return max(scores, key=lambda a: (scores[a], -abs(a - 0.5)))
