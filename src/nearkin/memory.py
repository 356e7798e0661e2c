"""`Memory`: the embeddings of the last batches, as further references of a batch."""

from typing import Any

import torch
from torch import Tensor

from nearkin.config.bounds import room_for
from nearkin.errors import NearkinError
from nearkin.numerics import double
from nearkin.pairs import Pairs


class Memory:
    """Cross-batch memory: the last M embeddings and their labels, as further references of a batch.

        references = the batch, then the memory; when it is full, the oldest rows are overwritten

    A loss needs no change for it: `Pairs` only has more columns, and these have no gradient. An older embedding of the
    anchor's own image is a positive like any other, as in the source. Losses that compare references with each other,
    and losses that have class vectors, cannot use a memory and refuse it (engine/objective.py).

    Source: Wang et al. 2020 (CVPR).

    Parameters:
        size: M, the number of rows; at least 1.
        dim: D, the width of an embedding.
        warmup: the number of epochs in which the memory is filled but not yet used, because embeddings change fast at
            the beginning of training. The training loop reads it.
        device: where the rows are kept.

    Attributes (len(memory) rows are filled so far):
        z: (M, D), raw embeddings.
        labels: (M,), their classes.
        step: (M,), the training step in which each row was stored.
        stored: how many rows were ever stored.

    Example:
        memory = nearkin.memory.Memory(size=1024, dim=8)
        memory.add(embeddings, labels, step=1)
        pairs = memory.beside(embeddings, labels)           # B anchors, B + len(memory) references
    """

    def __init__(self, size: int, dim: int, *, warmup: int = 0, device: torch.device | str = "cpu"):
        if size < 1:
            raise NearkinError(f"memory.size={size}: a memory needs at least 1 row")
        if torch.device(device).type == "cpu":
            room_for(size, dim, f"memory.size={size}", "a smaller memory.size or model.dim")
        self.warmup = warmup
        self.z = torch.zeros(size, dim, device=device)  # (M, D), raw
        self.labels = torch.zeros(size, dtype=torch.long, device=device)  # (M,)
        self.step = torch.zeros(size, dtype=torch.long, device=device)  # (M,)
        self.stored = 0

    def __len__(self) -> int:
        """The number of rows that are filled."""
        return min(self.stored, len(self.z))

    def beside(self, z: Tensor, labels: Tensor) -> Pairs:
        """The batch as anchors; the batch, then the filled rows of the memory, as references.

        Parameters:
            z: (B, D), raw embeddings of the batch.
            labels: (B,), their classes.
        """
        pairs = Pairs.of(z, labels)
        if not len(self):
            return pairs
        return Pairs(
            pairs.z,
            pairs.labels,
            references=torch.cat([pairs.z, self.z[: len(self)].to(pairs.z.dtype)]),  # (B + M, D)
            reference_labels=torch.cat([pairs.labels, self.labels[: len(self)]]),  # (B + M,)
            self_index=torch.arange(len(pairs.z), device=pairs.z.device),
        )

    def add(self, z: Tensor, labels: Tensor, step: int) -> None:
        """Store a batch in place of the oldest rows. If a batch has more than M rows, only the last M stay.

        Parameters:
            z: (B, D), raw embeddings; their gradient is dropped.
            labels: (B,), their classes.
            step: the training step, for the age of the rows.
        """
        if not isinstance(labels, Tensor) or labels.shape != z.shape[:1]:
            given = f"a tensor of shape {tuple(labels.shape)}" if isinstance(labels, Tensor) else type(labels).__name__
            raise NearkinError(f"labels are {given}: a tensor of {len(z)} class numbers is needed, one per embedding")
        size = len(self.z)
        self.stored += max(0, len(z) - size)  # rows that this batch itself would overwrite
        z, labels = z[-size:], labels[-size:]
        place = (self.stored + torch.arange(len(z), device=self.z.device)) % size
        self.z[place] = z.detach().to(self.z.dtype)
        self.labels[place] = labels
        self.step[place] = step
        self.stored += len(z)

    def describe(self, step: int) -> dict[str, Any]:
        """What the log says about the memory: {"rows", "classes", "balance", "age"}, or {"rows": 0} when it is empty.

        balance is the effective number of classes, exp(entropy), over the number of classes: 1 when all classes have
        equally many rows. age is the mean number of steps since a row was stored.
        """
        if not len(self):
            return {"rows": 0}
        count = double(self.labels[: len(self)].unique(return_counts=True)[1])
        share = count / count.sum()
        effective = float((-(share * share.log()).sum()).exp())
        age = step - float(double(self.step[: len(self)]).mean())
        return {
            "rows": len(self),
            "classes": len(count),
            "balance": round(effective / len(count), 4),
            "age": round(age, 1),
        }

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"z": self.z, "labels": self.labels, "step": self.step, "stored": self.stored}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, from a memory of the same size."""
        for name in ("z", "labels", "step"):
            getattr(self, name).copy_(state[name])
        self.stored = state["stored"]
