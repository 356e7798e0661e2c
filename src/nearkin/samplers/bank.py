"""The base of samplers that plan from embeddings: a bank with one unit vector per training image."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nearkin.config.bounds import room_for
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.samplers.base import BatchSampler


class BankSampler(BatchSampler):
    """Base of samplers that plan from embeddings, kept in a bank with one unit vector per training image.

    The bank is filled once, in eval mode, before training; after every step the rows of the batch are overwritten by
    its fresh embeddings (Roth et al. 2020; `refresh=False` keeps the first ones). A pass is planned from the bank as it
    is when the pass begins, and has ⌊N/B⌋ batches. A plan cannot be made again once rows of the bank were overwritten,
    so the state holds the bank and the plan of the current pass. Where the `due` of a subclass is True again
    later, the bank is filled again, with the weights of that step (sampler=offline).

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        refresh: True overwrites the bank's rows of a batch by its fresh embeddings after every step; False keeps the
            first ones.
    """

    needs_bank: ClassVar[bool] = True

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, refresh: bool = True):
        super().__init__(labels, batch, seed)
        self.refresh = refresh
        self._bank: Tensor | None = None

    def reserve(self, dim: int) -> None:
        """Raise an error if there is no memory for a bank of N embeddings of `dim` dimensions.

        Called before the first image is embedded.
        """
        what = f"sampler={self.name} keeps the embedding of every training image"
        instead = "a smaller model.dim, or a sampler without a bank (balanced, random, spc, spc_r)"
        room_for(len(self.labels), dim, what, instead)

    def fill(self, z: Tensor) -> None:  # (N, D)
        """Fill the bank: z (N, D) are the raw embeddings of all training images, in the order of the labels."""
        if z.dim() != 2 or len(z) != len(self.labels):
            shape = " x ".join(map(str, z.shape))
            raise NearkinError(f"the bank of sampler={self.name} needs {len(self.labels)} embeddings, got {shape}")
        if bad := int((~z.isfinite().all(1)).sum()):
            raise NearkinError(f"the bank of sampler={self.name}: {bad} of {len(z)} embeddings are not finite")
        self._bank = _units(z)

    @property
    def due(self) -> bool:
        """Must the bank be filled before the next batch?"""
        return self._bank is None

    @property
    def bank(self) -> Tensor:  # (N, D)
        """The unit vectors of all training images, (N, D); an error before `fill` was called."""
        if self._bank is None:
            raise NearkinError(f"sampler={self.name} plans from a bank of embeddings: call fill(z) before next()")
        return self._bank

    def update(self, rows: np.ndarray, z: Tensor) -> None:
        """Overwrite the bank's rows (B,) of a batch by its fresh embeddings z (B, D), unless `refresh` is False.

        If an image is twice in the batch, its last embedding stays.
        """
        if self.refresh:
            # if an image is twice in the batch its last embedding stays, whatever the order in which rows are copied
            images, from_end = np.unique(rows[::-1], return_index=True)
            self.bank[torch.from_numpy(images)] = _units(z)[len(rows) - 1 - torch.from_numpy(from_end)]

    def __len__(self) -> int:
        return len(self.labels) // self.batch

    def _planned(self) -> list[np.ndarray] | np.ndarray:
        if self._plan is None:
            self._plan = np.array(super()._planned())  # (batches, B), once: the state is taken every step
        return self._plan

    def state_dict(self) -> dict[str, Any]:
        """Pass and position, the bank (N, D), and the plan of the current pass (batches, B)."""
        state = super().state_dict()
        if self._bank is not None:
            state["bank"] = self._bank  # not a copy: a checkpoint saved after the step has the step's update
        if self._plan is not None:
            state["plan"] = torch.from_numpy(np.asarray(self._plan))  # (batches, B)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`. A state from before the bank was filled leaves the bank as it is."""
        super().load_state_dict(state)
        if "bank" in state:
            self._bank = state["bank"].clone()
        if "plan" in state:
            self._plan = state["plan"].numpy()


def _units(z: Tensor) -> Tensor:
    return unit(z.detach().to("cpu", torch.float32))
