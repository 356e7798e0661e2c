"""The base of all batch samplers."""

from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS


class BatchSampler:
    """A batch sampler: an endless stream of batches, planned one pass at a time.

    A pass is planned from (seed, number of the pass), so the state in a checkpoint is two numbers, and the stream
    after a resume is the same as without a stop. Samplers that plan from embeddings have more state: see
    `BankSampler`. A subclass defines `plan(rng)`.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs_bank: ClassVar[bool] = False  # True: it plans from embeddings

    def __init__(self, labels: np.ndarray, batch: int, seed: int):
        self.labels = np.asarray(labels)  # (N,)
        self.batch = batch
        self.seed = seed
        self._pass = 0
        self._position = 0
        self._plan: list[np.ndarray] | np.ndarray | None = None
        if batch > len(self.labels):
            raise NearkinError(f"train.batch={batch} is larger than the {len(self.labels)} training images")

    @classmethod
    def check_settings(cls, batch: int, **settings: Any) -> None:
        """Refuse settings that are wrong for any data, before the data are read. By default nothing is refused."""

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The batches of one pass: a list of positions in the training data, each (B,)."""
        raise NearkinError(f"{type(self).__name__} does not define plan(rng)")

    def _planned(self) -> list[np.ndarray] | np.ndarray:
        if self._plan is None:
            self._plan = self.plan(np.random.default_rng([self.seed, self._pass]))
        return self._plan

    def __len__(self) -> int:
        """The number of batches in the current pass."""
        return len(self._planned())

    def next(self) -> np.ndarray:
        """The next batch, as positions in the training data (B,); after the last one of a pass a new pass begins."""
        batch = self._planned()[self._position]
        self._position += 1
        if self._position == len(self):
            self._pass, self._position, self._plan = self._pass + 1, 0, None
        return batch

    def update(self, rows: np.ndarray, z: Tensor) -> None:
        """Give the sampler, after a step, the embeddings of a batch; by default they are ignored.

        rows (B,) are the positions that `next()` gave, z (B, D) their raw embeddings.
        """

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs to continue the stream after the batch given last."""
        return {"pass": self._pass, "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the stream from `state`, which was taken from a sampler with the same arguments."""
        self._pass, self._position, self._plan = state["pass"], state["position"], None


SAMPLERS.takes(BatchSampler, words="a nearkin.samplers.BatchSampler")
