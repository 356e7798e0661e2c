"""What a batch sampler is: an endless stream of batches, planned one pass at a time.

A pass is planned from (seed, number of the pass), so the state that a checkpoint carries is two numbers, and
the stream after a resume is the stream that was never stopped. Samplers that plan from embeddings carry more:
see `BankSampler`.
"""

from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from nearkin.errors import NearkinError


class BatchSampler:
    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs_bank: ClassVar[bool] = False                              # does it plan from embeddings?

    def __init__(self, labels: np.ndarray, batch: int, seed: int):
        self.labels = np.asarray(labels)                            # (N,)
        self.batch = batch
        self.seed = seed
        self._pass = 0
        self._position = 0
        self._plan: list[np.ndarray] | None = None
        if batch > len(self.labels):
            raise NearkinError(f"train.batch={batch} is larger than the {len(self.labels)} training images")

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The batches of one pass, as index arrays."""
        raise NearkinError(f"{type(self).__name__} does not define plan(rng)")

    def _planned(self) -> list[np.ndarray]:
        if self._plan is None:
            self._plan = self.plan(np.random.default_rng([self.seed, self._pass]))
        return self._plan

    def __len__(self) -> int:
        """Batches of a pass."""
        return len(self._planned())

    def next(self) -> np.ndarray:
        batch = self._planned()[self._position]
        self._position += 1
        if self._position == len(self):
            self._pass, self._position, self._plan = self._pass + 1, 0, None
        return batch

    def update(self, rows: np.ndarray, z: Tensor) -> None:
        """After a step: the batch's positions and what the network made of them."""

    def state_dict(self) -> dict[str, Any]:
        return {"pass": self._pass, "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._pass, self._position, self._plan = state["pass"], state["position"], None
