"""Deep relational metric learning: any loss on the whole embedding and on its sub-embeddings."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from nearkin.config.bounds import at_least
from nearkin.errors import NearkinError
from nearkin.losses import Loss
from nearkin.losses.base import with_rates
from nearkin.methods.base import Method
from nearkin.models import Model
from nearkin.models.drml import DRMLHead, PartLinear
from nearkin.pairs import Embedded
from nearkin.registry import METHODS
from nearkin.spaces import Space


@METHODS.register("drml")
class DRML(Method):
    """Deep relational metric learning: an adaptive ensemble of sub-embeddings with a relation module.

    Any loss is computed on the whole embedding, and on each sub-embedding for the samples that it suits:

        r_ik = ‖E_k n_ik + e_k - f_ik‖² / (F/K)     error of decoder k; nodes and features without a gradient
        k*(i) = argmin_k r_ik                       the branch of sample i
        L = Σ_k L_k({n_ik : k*(i) = k}) + w_rep·L_0(z) + w_rec·mean_{i,k} r_ik

    L_0, ..., L_K are of the same kind, each with its own proxies, β and miner. A branch with fewer than two samples
    gives 0. n, f and z come from `nearkin.models.drml.DRMLHead`.
    Source: Zheng et al. 2021 (ICCV); w_rep = 10, w_rec = 1 as in the run that the official code documents (its defaults
    are 1 and 1).

    Parameters:
        whole: the objective of the whole embedding, L_0.
        branches: K objectives, one for each sub-embedding.
        part_features: F/K, width of a part of the pooled feature.
        node_dim: d, width of a sub-embedding.
        w_rep: weight of the loss of the whole embedding; at least 0.
        w_rec: weight of the reconstruction errors; at least 0.

    Shapes: B samples, F features, K branches, d dimensions of a node.
    """

    paper: ClassVar[str] = "Zheng et al. 2021"
    head: ClassVar[str] = "drml"  # the head that gives nodes and parts
    search: ClassVar = {"w_rep": Space(1, 100, log=True), "w_rec": Space(0.1, 10, log=True)}

    def __init__(
        self,
        whole: Method,
        branches: Sequence[Method],
        part_features: int,
        node_dim: int,
        *,
        w_rep: float = 10.0,
        w_rec: float = 1.0,
    ):
        super().__init__()
        at_least(0, w_rep=w_rep, w_rec=w_rec)
        if any(objective.mixes for objective in (whole, *branches)):
            raise NearkinError("mixup does not go with method drml: a mixed sample has no branch; choices: norm, rho")
        self.whole = whole
        self.branches = nn.ModuleList(branches)
        self.decoder = PartLinear(len(branches), node_dim, part_features)  # E, e
        self.w_rep = w_rep
        self.w_rec = w_rec
        self.filled: Tensor | None = None  # share of each branch in the last call

    @classmethod
    def around(cls, objective: Callable[[int], Method], model: Model, **settings: Any) -> "DRML":
        """The method for a model; `objective` makes one for embeddings of a given width."""
        if not isinstance(model.head, DRMLHead):
            raise NearkinError(
                "method drml reads nodes and parts beside the embedding: leave model.head unset, or set it to drml"
            )
        parts = model.head.parts
        branches = [objective(model.dim // parts) for _ in range(parts)]
        return cls(objective(model.dim), branches, model.backbone.features // parts, model.dim // parts, **settings)

    def forward(self, embedded: Any, labels: Tensor, generator: Generator | None = None, memory: Any = None) -> Tensor:
        """w_rep·L_0 of the whole batch, plus every branch on its samples, plus the reconstruction errors."""
        if memory is not None:
            self.check_memory()
        nodes, parts = self.check(embedded)
        errors = (self.decoder(nodes.detach()) - parts.detach()).square().mean(2)  # (B, K)
        branch_of = errors.argmin(1)  # (B,)
        sizes = (branch_of[:, None] == torch.arange(len(self.branches), device=branch_of.device)).sum(0)  # (K,)
        self.filled = sizes / max(1, len(branch_of))
        value = self.w_rep * self.whole(embedded.z, labels, generator) + self.w_rec * errors.mean()
        samples_of = branch_of.argsort(stable=True).split(sizes.tolist())  # one wait for the device, not K
        for k, (branch, chosen) in enumerate(zip(self.branches, samples_of, strict=True)):
            node = nodes[chosen, k]  # (B_k, d)
            value = value + (branch(node, labels[chosen], generator) if len(chosen) > 1 else node.sum() * 0)
        return value

    def check(self, embedded: Embedded) -> tuple[Tensor, Tensor]:
        """Nodes (B, K, d) and parts (B, K, F/K) of a batch, or an error that says what is missing."""
        nodes, parts = (embedded.extras.get(name) for name in ("nodes", "parts"))
        if nodes is None or parts is None:
            raise NearkinError(
                f"method drml reads nodes and parts beside the embedding; the model gave "
                f"{', '.join(embedded.extras) or 'neither'}: set model.head=drml"
            )
        if nodes.shape[1] != len(self.branches):
            raise NearkinError(f"model.parts={nodes.shape[1]}: this drml was built for {len(self.branches)} parts")
        return nodes, parts

    def check_memory(self) -> None:
        """A memory is always refused."""
        raise NearkinError("memory.size does not go with method drml: samples change their branches from step to step")

    @property
    def loss(self) -> Loss:
        """The loss of the whole embedding."""
        return self.whole.loss  # type: ignore[return-value]

    @property
    def active(self) -> Tensor | None:
        """Share of active terms of the whole embedding's loss."""
        return self.whole.active

    def describe(self) -> dict[str, Any]:
        """For the log: nothing balances the branches, so an empty branch shows here."""
        return {} if self.filled is None else {"branches": [round(share, 4) for share in self.filled.tolist()]}

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The groups of all objectives, merged by name, and the decoders; with a base rate `lr`, ready for torch."""
        groups: dict[str, dict[str, Any]] = {}
        for objective in (self.whole, *self.branches):
            for group in objective.parameter_groups():
                groups.setdefault(group["name"], {**group, "params": []})["params"].extend(group["params"])
        decoder = {"name": "decoder", "params": list(self.decoder.parameters()), "lr_factor": 1.0}
        return with_rates([*groups.values(), decoder], lr)
