"""The settings of a run that are the same for all parts: network, memory, training.

Every default cites its source; None leaves a setting open; runs/defaults.py fills it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nearkin.registry import BACKBONES, HEADS


class Frozen(BaseModel):
    """Settings that do not change once they are made; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSpec(Frozen):
    """The network: `model.*`."""

    backbone: str = "convnet"
    weights: str | None = None                  # None, "imagenet" (packaged weights) or a local path
    pool: Literal["avg", "max", "both"] | None = None   # None: filled by runs/defaults.py
    head: str | None = None                     # None: the method's, or linear
    dim: int | None = Field(None, ge=1)         # None: filled by runs/defaults.py
    parts: int = Field(4, ge=1)                 # of a DRML head
    norm: Literal["none", "layer"] | None = None    # None: the loss's
    freeze_bn: bool | None = None               # None: filled by runs/defaults.py
    cut: str = "none"
    views: int = Field(2, ge=1)

    @model_validator(mode="after")
    def _known(self) -> "ModelSpec":
        BACKBONES[self.backbone]
        if self.head is not None:
            HEADS[self.head]
        return self


class MemorySpec(Frozen):
    """Cross-batch memory (memory.py)."""

    size: int = Field(0, ge=0)                  # embeddings kept; 0: none
    warmup: int = Field(1, ge=0)                # epochs without it: 1,000 steps in its source, an epoch of SOP


class GroupSpec(Frozen):
    """Settings of one parameter group (backbone, head, loss, ...) that differ from the common ones."""

    lr: float | None = Field(None, ge=0)
    weight_decay: float | None = Field(None, ge=0)
    eps: float | None = Field(None, gt=0)


class TrainSpec(Frozen):
    """Optimiser, epochs, batches, selection: `train.*`."""

    optimiser: Literal["sgd", "rmsprop", "adam", "adamw"] = "adamw"
    lr: float | None = Field(None, gt=0)        # None: filled by runs/defaults.py
    weight_decay: float = Field(1e-4, ge=0)     # ProxyAnchor's and the thesis's code
    momentum: float = Field(0.9, ge=0, lt=1)    # SGD and RMSprop (reality check)
    eps: float = Field(1e-8, gt=0)
    epochs: int | None = Field(None, ge=0)      # None: filled by runs/defaults.py; 0: the untrained network
    batches_per_epoch: int | None = Field(None, ge=1)   # None: an epoch is one pass of the sampler
    batch: int | None = Field(None, ge=2)       # None: filled by runs/defaults.py
    chunk: int | None = Field(None, ge=1)       # images in memory at a time (two passes); None: the whole batch
    schedule: Literal["constant", "step", "cosine"] = "constant"
    step: int = Field(10, ge=1)                 # epochs between the drops of `step`
    gamma: float = Field(0.5, gt=0, le=1)       # ProxyAnchor's code
    warmup: int = Field(0, ge=0)                # epochs in which only new parameters train
    clip: float | None = Field(None, gt=0)
    clip_by: Literal["value", "norm"] = "value"
    groups: dict[str, GroupSpec] = {}
    eval_every: int = Field(1, ge=1)            # epochs
    patience: int | None = Field(None, ge=1)    # epochs without a better validation result
    select: str = "map_at_r"                    # the metric on validation classes that picks the epoch
    seed: int = Field(0, ge=0)
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    amp: bool = False
