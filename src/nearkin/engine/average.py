"""`Average`: a moving average of the weights, which training carries along; validation and the stored model use it."""

from copy import deepcopy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)
Objective = TypeVar("Objective", bound=nn.Module)


class Average(Generic[Network, Objective]):
    """A moving average of all parameters of a network and of its objective, which has the proxies.

        m_t = d_t m_{t-1} + (1 - d_t) θ_t        d_t = min(DECAY, t / (t + 1)), θ_t the weights after step t, m_0 = θ_0

    The first 1/(1 - DECAY) steps are averaged evenly, so that a short training is not drawn back to where it began.
    Sources: Izmailov et al. 2018 for averaged weights; Tarvainen and Valpola 2017 for the even beginning.

    Fields:
        model, objective: copies with the averaged weights; with DECAY 0 the given ones themselves.

    Parameters:
        decay: DECAY, at least 0 and below 1; 0: nothing is averaged.
        model, objective: what is trained.

    Example:
        average = Average(0.98, model, objective)
        average.update(step)                     # after every step of the optimiser; the first is step 1
        average.take_buffers()
        validate(average.model)
    """

    def __init__(self, decay: float, model: Network, objective: Objective):
        self.decay = decay
        self.trained = model, objective
        self.model, self.objective = deepcopy(self.trained) if decay else self.trained
        self.parameters = _parameters(self.trained) if decay else []
        self.values = _parameters((self.model, self.objective)) if decay else []
        for value in self.values:
            value.requires_grad_(False)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 1."""
        if self.values:
            torch._foreach_lerp_(self.values, self.parameters, 1 - min(self.decay, step / (step + 1)))

    @torch.no_grad()
    def take_buffers(self) -> None:
        """Give the copies the current buffers: what is counted or measured cannot be averaged."""
        for copy, module in zip((self.model, self.objective), self.trained, strict=True):
            for value, buffer in zip(copy.buffers(), module.buffers(), strict=True):
                value.copy_(buffer)

    def state_dict(self) -> list[Tensor]:
        """The averaged weights, for a checkpoint."""
        return [value.detach() for value in self.values]

    @torch.no_grad()
    def load_state_dict(self, state: list[Tensor]) -> None:
        """Take the averaged weights from a checkpoint."""
        for value, stored in zip(self.values, state, strict=True):
            value.copy_(stored)


def _parameters(modules: tuple[nn.Module, ...]) -> list[Tensor]:
    return [p for module in modules for p in module.parameters()]
