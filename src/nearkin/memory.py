"""`Memory`: the last embeddings, as extra references of a batch (cross-batch memory).

    references = batch ++ memory,   oldest rows overwritten first

Wang et al. 2020 (CVPR). A loss needs nothing for it: `Pairs` only has more columns, which carry no gradient. An older
embedding of the anchor's own image is a positive like any other view of it, as in the source. Losses that compare
references with each other, or samples with proxies of their own, have no use for it and refuse it (objective.py).

Shapes: B anchors, M rows of memory, D dimensions.
"""

from typing import Any

import torch
from torch import Tensor

from nearkin.config.bounds import room_for
from nearkin.errors import NearkinError
from nearkin.pairs import Pairs


class Memory:
    def __init__(self, size: int, dim: int, *, warmup: int = 0, device: torch.device | str = "cpu"):
        """`warmup`: epochs in which it is only filled, because young embeddings age fast."""
        if size < 1:
            raise NearkinError(f"memory.size={size}: a memory has at least 1 row")
        if torch.device(device).type == "cpu":
            room_for(size, dim, f"memory.size={size}", "a smaller memory.size or model.dim")
        self.warmup = warmup
        self.z = torch.zeros(size, dim, device=device)                          # (M, D), raw
        self.labels = torch.zeros(size, dtype=torch.long, device=device)        # (M,)
        self.step = torch.zeros(size, dtype=torch.long, device=device)          # (M,) when each was stored
        self.stored = 0                                                         # rows ever stored

    def __len__(self) -> int:
        return min(self.stored, len(self.z))

    def beside(self, z: Tensor, labels: Tensor) -> Pairs:
        """The batch as anchors, the batch and the memory as references."""
        pairs = Pairs.of(z, labels)
        if not len(self):
            return pairs
        return Pairs(
            pairs.z, pairs.labels,
            references=torch.cat([pairs.z, self.z[: len(self)].to(pairs.z.dtype)]),             # (B + M, D)
            reference_labels=torch.cat([pairs.labels, self.labels[: len(self)]]),               # (B + M,)
            own=torch.arange(len(pairs.z), device=pairs.z.device),
        )  # fmt: skip

    def add(self, z: Tensor, labels: Tensor, step: int) -> None:
        """Overwrite the oldest rows; of a batch larger than the memory the last rows stay."""
        size = len(self.z)
        self.stored += max(0, len(z) - size)                        # rows that would be overwritten at once
        z, labels = z[-size:], labels[-size:]
        place = (self.stored + torch.arange(len(z), device=self.z.device)) % size
        self.z[place] = z.detach().to(self.z.dtype)
        self.labels[place] = labels
        self.step[place] = step
        self.stored += len(z)

    def describe(self, step: int) -> dict[str, Any]:
        """For the log: rows; classes; balance, the effective number of classes exp(entropy) over the number of
        classes, 1 when all have equally many rows; age, the mean number of steps since a row was stored."""
        if not len(self):
            return {"rows": 0}
        count = self.labels[: len(self)].unique(return_counts=True)[1].double()
        share = count / count.sum()
        effective = float((-(share * share.log()).sum()).exp())
        age = step - float(self.step[: len(self)].double().mean())
        return {"rows": len(self), "classes": len(count), "balance": round(effective / len(count), 4),
                "age": round(age, 1)}  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return {"z": self.z, "labels": self.labels, "step": self.step, "stored": self.stored}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("z", "labels", "step"):
            getattr(self, name).copy_(state[name])
        self.stored = state["stored"]
