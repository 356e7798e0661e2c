"""The settings of a run that are the same for all parts: network, memory, training.

Every default cites its source; None leaves a setting open; runs/defaults.py fills it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nearkin.config.born import born, left_open
from nearkin.errors import NearkinError
from nearkin.registry import BACKBONES, HEADS


class Frozen(BaseModel):
    """Settings that do not change once they are made; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSpec(Frozen):
    """The network: `model.*`."""

    backbone: str = born("convnet")
    weights: str | None = born(None)            # None, "imagenet" (packaged weights) or a local path
    pool: Literal["avg", "max", "both"] | None = left_open("avg") # None: filled by runs/defaults.py
    head: str | None = left_open("linear")      # None: the method's, or linear
    dim: int | None = left_open(ge=1)           # None: filled by runs/defaults.py
    parts: int = born(4, ge=1)                  # of a DRML head
    norm: Literal["none", "layer"] | None = left_open("none") # None: the loss's
    freeze_bn: bool | None = left_open()        # None: filled by runs/defaults.py
    cut: str = born("none")
    views: int = born(2, ge=1)

    @model_validator(mode="after")
    def _known(self) -> "ModelSpec":
        BACKBONES[self.backbone]
        if self.head is not None:
            HEADS[self.head]
        return self


class MemorySpec(Frozen):
    """Cross-batch memory (memory.py)."""

    size: int = born(0, ge=0)                   # embeddings kept; 0: none
    warmup: int = born(1, ge=0)                 # epochs without it: 1,000 steps in its source, an epoch of SOP


class GroupSpec(Frozen):
    """Settings of one parameter group (backbone, head, loss, ...) that differ from the common ones."""

    lr: float | None = Field(None, ge=0)
    weight_decay: float | None = Field(None, ge=0)
    eps: float | None = Field(None, gt=0)


class TrainSpec(Frozen):
    """Optimiser, epochs, batches, selection: `train.*`."""

    optimiser: Literal["sgd", "rmsprop", "adam", "adamw"] = born("adamw")
    lr: float | None = left_open(gt=0)          # None: filled by runs/defaults.py
    weight_decay: float = born(1e-4, ge=0)      # ProxyAnchor's and the thesis's code
    momentum: float = born(0.9, ge=0, lt=1)     # SGD and RMSprop (reality check)
    eps: float = born(1e-8, gt=0)
    epochs: int | None = left_open(ge=0)        # None: filled by runs/defaults.py; 0: the untrained network
    batches_per_epoch: int | None = born(None, ge=1) # None: an epoch is one pass of the sampler
    batch: int | None = left_open(ge=2)         # None: filled by runs/defaults.py
    chunk: int | None = born(None, ge=1)        # images in memory at a time (two passes); None: the whole batch
    schedule: Literal["constant", "step", "cosine"] = born("constant")
    step: int = born(10, ge=1)                  # epochs between the drops of `step`
    gamma: float = born(0.5, gt=0, le=1)        # ProxyAnchor's code
    warmup: int = born(0, ge=0)                 # epochs in which only new parameters train
    clip: float | None = born(None, gt=0)
    clip_by: Literal["value", "norm"] = born("value")
    groups: dict[str, GroupSpec] = born({})
    eval_every: int = born(1, ge=1)             # epochs
    patience: int | None = born(None, ge=1)     # epochs without a better validation result
    select: str = born("map_at_r")              # the metric on validation classes that picks the epoch
    seed: int = born(0, ge=0)
    device: Literal["auto", "cpu", "cuda", "mps"] = born("auto")
    amp: bool = born(False)
    curve: bool = born(False)                       # keep test embeddings of every epoch, for a test curve afterwards

    @model_validator(mode="after")
    def _stops_on_validation(self) -> "TrainSpec":
        if self.patience is not None and self.patience < self.eval_every:
            raise NearkinError(
                f"train.patience={self.patience} is below train.eval_every={self.eval_every}: training would stop "
                f"before it is validated again; at least {self.eval_every}"
            )
        return self
