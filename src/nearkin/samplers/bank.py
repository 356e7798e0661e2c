"""What samplers share that plan from embeddings: a bank with one unit vector of every training image.

The bank is filled once, in eval mode, before training; after every step the rows of the batch are overwritten by
its fresh embeddings (Roth et al. 2020; `refresh=False` leaves the first ones). A pass is planned from the bank as it
is when the pass begins.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nearkin.config.bounds import room_for
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.samplers.base import BatchSampler


class BankSampler(BatchSampler):
    """⌊N/B⌋ batches a pass. A plan cannot be made again once rows of the bank were overwritten, so the state holds the
    bank and the plan of the present pass."""

    needs_bank: ClassVar[bool] = True

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, refresh: bool = True):
        super().__init__(labels, batch, seed)
        self.refresh = refresh
        self._bank: Tensor | None = None

    def reserve(self, dim: int) -> None:
        """Is there room for the bank? Asked before the first image is embedded."""
        what = f"sampler={self.name} keeps the embedding of every training image"
        instead = "a smaller model.dim, or a sampler without a bank (balanced, random, spc, spc_r)"
        room_for(len(self.labels), dim, what, instead)

    def fill(self, z: Tensor) -> None:                              # (N, D)
        """The raw embeddings of all training images, in the order of the labels."""
        if z.dim() != 2 or len(z) != len(self.labels):
            shape = " x ".join(map(str, z.shape))
            raise NearkinError(f"the bank of sampler={self.name} takes {len(self.labels)} embeddings, got {shape}")
        if bad := int((~z.isfinite().all(1)).sum()):
            raise NearkinError(f"the bank of sampler={self.name}: {bad} of {len(z)} embeddings are not finite")
        self._bank = _units(z)

    @property
    def bank(self) -> Tensor:                                       # (N, D)
        if self._bank is None:
            raise NearkinError(f"sampler={self.name} plans from a bank of embeddings: fill(z) comes before next()")
        return self._bank

    def update(self, rows: np.ndarray, z: Tensor) -> None:
        if self.refresh:
            # an image that is twice in the batch: the last one stays, whatever the order of copying
            kept, from_end = np.unique(rows[::-1], return_index=True)
            self.bank[torch.from_numpy(kept)] = _units(z)[len(rows) - 1 - torch.from_numpy(from_end)]

    def __len__(self) -> int:
        return len(self.labels) // self.batch

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if self._bank is not None:
            state["bank"] = self._bank                              # no copy: a later checkpoint has the step's update
        if self._plan is not None:
            state["plan"] = torch.from_numpy(np.stack(self._plan))  # (batches, B)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """A state from before the bank was filled leaves the bank as it is."""
        super().load_state_dict(state)
        if "bank" in state:
            self._bank = state["bank"].clone()
        if "plan" in state:
            self._plan = list(state["plan"].numpy())


def _units(z: Tensor) -> Tensor:
    return unit(z.detach().to("cpu", torch.float32))
