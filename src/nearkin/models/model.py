"""`Model`: pixels -> backbone -> pooling -> head -> raw embedding."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from nearkin.errors import NearkinError, choices
from nearkin.models.backbone import Backbone, InputRecord
from nearkin.models.heads import NoHead, make_head
from nearkin.pairs import Embedded
from nearkin.regularisers import Mix

POOLS = ("avg", "max", "both")
NORMS = ("none", "layer")


class Model(nn.Module):
    """Pixels -> backbone -> pooling -> head -> raw embedding, with a frozen front and a trained back.

        front(images)   normalisation, then the stages up to and including the cut: frozen, in eval mode, no graph
        back(x)         the remaining stages, pooling, normalisation, head, normalisation of the output
        forward(images) = back(front(images))

    The model gives raw vectors: L2 normalisation happens in `Pairs` and in evaluation.

    Parameters:
        backbone: the network without its classifier, cut into named stages.
        pool: how the last map becomes a vector: avg, max, or both (their sum).
        head: a registered head (linear, none, pca, drml) or an import path.
        dim: D, width of the embedding.
        init: what a linear head starts from: kaiming, torch or pca (once its `begin` is called).
        parts: of a head that has parts (drml).
        pre_norm: of the pooled feature, before the head: none, or layer (LayerNorm without parameters).
        norm: of the embedding: none, or layer (LayerNorm without parameters).
        freeze_bn: keep the statistics of every BatchNorm of the backbone as they are; γ and β train.
        bn_affine: with `freeze_bn`: False freezes γ and β, too.
        cut: what is frozen: none (the front only normalises), all stages up to the one named, or all (the front ends
            after pooling, and the head alone trains).
        pretrained: were weights loaded? A warm-up then trains the head alone.

    Shapes: B images, C channels, h x w the last map, D dimensions.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        pool: str = "avg",
        head: str = "linear",
        dim: int = 128,
        init: str = "kaiming",
        parts: int = 4,
        pre_norm: str = "none",
        norm: str = "none",
        freeze_bn: bool = False,
        bn_affine: bool = True,
        cut: str = "none",
        pretrained: bool = False,
    ):
        super().__init__()
        for what, value, known in (("pool", pool, POOLS), ("pre_norm", pre_norm, NORMS), ("norm", norm, NORMS)):
            if value not in known:
                raise NearkinError(f"model.{what}={value!r}: {choices(str(value), known)}")
        if cut not in (*backbone.stages, "none", "all"):
            raise NearkinError(f"model.cut={cut!r}: choices: none, {', '.join(backbone.stages)}, all")
        if head != "none" and dim < 1:
            raise NearkinError(f"model.dim={dim}: must be at least 1")
        check_batch_norm(freeze_bn, bn_affine)
        self.backbone = backbone
        self.pool = pool
        self.pre_norm = normalisation(pre_norm, backbone.features)
        self.head = make_head(head, backbone.features, dim, init=init, parts=parts)
        self.dim = getattr(self.head, "dim", dim)
        self.norm = normalisation(norm, self.dim)
        self.freeze_bn, self.bn_affine = freeze_bn, bn_affine
        self.cut = cut
        self.pretrained = pretrained
        last = {"none": 0, "all": len(backbone.stages)}.get(cut)
        last = backbone.stages.index(cut) + 1 if last is None else last
        self.frozen_stages, self.trained_stages = backbone.stages[:last], backbone.stages[last:]
        for module in self.stage_modules(self.frozen_stages):
            module.requires_grad_(False)
        if not bn_affine:
            for norm_layer in self.batch_norms():
                norm_layer.requires_grad_(False)
        self.train()

    def front(self, images: Tensor) -> Tensor:
        """uint8 RGB images (B, 3, H, W) -> the input of the back."""
        with torch.no_grad():
            x = self.record.normalise(images)  # (B, 3, H, W)
            for stage in self.frozen_stages:
                x = self.backbone.run_stage(stage, x)
            return self.pooled(x) if self.cut == "all" else x  # (B, C) or a map

    def back(self, x: Tensor, mix: Mix | None = None) -> Embedded:
        """The output of the front -> raw embeddings (B, D). `mix` (manifold mixup) may act on the input of every
        trained stage and of the pooling."""
        if self.cut != "all":
            x = x.contiguous(memory_format=torch.channels_last)
        for depth, stage in enumerate(self.trained_stages):
            x = self.backbone.run_stage(stage, mix(depth, x) if mix else x)
        x = mix(len(self.trained_stages), x) if mix else x
        if self.cut != "all":
            x = self.pooled(x)  # (B, C)
        out = self.head(self.pre_norm(x))  # (B, D)
        out = out if isinstance(out, Embedded) else Embedded(out)
        return Embedded(self.norm(out.z), out.extras, mix)

    def forward(self, images: Tensor, mix: Mix | None = None) -> Embedded:
        """uint8 RGB images (B, 3, H, W) -> raw embeddings (B, D)."""
        return self.back(self.front(images), mix)

    @property
    def depths(self) -> int:
        """Where `mix` may act: 0 is the input of the back, k the output of its k-th stage."""
        return len(self.trained_stages) + 1

    def pooled(self, x: Tensor) -> Tensor:
        """Average, maximum or their sum (both: the ProxyAnchor and HIST codes) over the last map."""
        pooled = {
            "avg": lambda: F.adaptive_avg_pool2d(x, 1),
            "max": lambda: F.adaptive_max_pool2d(x, 1),
            "both": lambda: F.adaptive_avg_pool2d(x, 1) + F.adaptive_max_pool2d(x, 1),
        }[self.pool]()  # (B, C, 1, 1)
        return pooled.flatten(1)  # (B, C)

    def train(self, mode: bool = True) -> "Model":
        """The front never leaves eval mode. With `freeze_bn` neither does any BatchNorm: its statistics stay; its γ and
        β train, unless `bn_affine` is False."""
        super().train(mode)
        for module in self.stage_modules(self.frozen_stages):
            module.eval()
        if self.freeze_bn:
            for module in self.batch_norms():
                module.eval()
        return self

    def trainable_groups(self) -> list[dict[str, Any]]:
        """Parameters by name; `new`: drawn at random, so that a warm-up may train them alone first. What never trains
        is in no group: the loop switches the gradients of a group on and off."""
        fixed = set() if self.bn_affine else {p for norm in self.batch_norms() for p in norm.parameters()}
        backbone = [p for m in self.stage_modules(self.trained_stages) for p in m.parameters() if p not in fixed]
        groups = [
            {"name": "backbone", "params": backbone, "new": not self.pretrained},
            {"name": "head", "params": list(self.head.parameters()), "new": True},
        ]
        return [group for group in groups if group["params"]]

    def stage_modules(self, stages: tuple[str, ...]) -> list[nn.Module]:
        """The modules of these stages."""
        return [module for stage in stages for module in self.backbone.stage_modules(stage)]

    def batch_norms(self) -> list[nn.Module]:
        """Every BatchNorm of the backbone."""
        return [module for module in self.backbone.modules() if isinstance(module, _BatchNorm)]

    @contextmanager
    def headless(self) -> Iterator[None]:
        """Inside, the model returns the input of its head: the pooled feature, normalised if `pre_norm` says so."""
        before = self.head, self.norm, self.dim
        self.head, self.norm, self.dim = NoHead(self.backbone.features, 0), nn.Identity(), self.backbone.features
        try:
            yield
        finally:
            self.head, self.norm, self.dim = before

    @property
    def record(self) -> InputRecord:
        """The input that the network expects."""
        return self.backbone.record


def normalisation(name: str, width: int) -> nn.Module:
    """`layer`: a LayerNorm without parameters; `none`: nothing."""
    return nn.LayerNorm(width, elementwise_affine=False) if name == "layer" else nn.Identity()


def check_batch_norm(freeze_bn: bool | None, bn_affine: bool) -> None:
    """Scale and shift are frozen together with the statistics, or not at all."""
    if not bn_affine and not freeze_bn:
        raise NearkinError("model.bn_affine=false needs model.freeze_bn=true, not false: scale and shift freeze too")
