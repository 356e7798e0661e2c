"""DRML written a second time, as loops over samples and parts, straight from its formulas."""

from typing import Any

import torch
from oracles.losses import ORACLES
from oracles.words import hinge, unit
from torch import Generator, Tensor


def linear(layer: Any, k: int, x: Tensor) -> Tensor:
    return torch.stack([(layer.weight[k, o] * x).sum() + layer.bias[k, o] for o in range(layer.weight.shape[1])])


def cut(f_i: Tensor, parts: int) -> list[Tensor]:
    size = len(f_i) // parts
    return [f_i[k * size : (k + 1) * size] for k in range(parts)]


def nodes_of(head: Any, f_i: Tensor) -> list[Tensor]:
    return [unit(linear(head.embed, k, part)) for k, part in enumerate(cut(f_i, head.parts))]


def scores_of(head: Any, f_i: Tensor) -> list[list[Tensor]]:
    """S[k][l]: how much of node k goes to output l."""
    still = cut(f_i.detach(), head.parts)
    everyone = range(head.parts)
    u = [linear(head.edge_from, k, still[k]) for k in everyone]
    v = [linear(head.edge_to, k, still[k]) for k in everyone]
    w, b = head.score_weight, head.score_bias
    raw = [[hinge((w * (u[k] - v[k_to])).sum() + b) for k_to in everyone] for k in everyone]
    for k_to in everyone:
        total = sum(raw[k][k_to] for k in everyone)
        if total > 0:
            for k in everyone:
                raw[k][k_to] = raw[k][k_to] / total
    return raw


def embedding_of(head: Any, f_i: Tensor) -> Tensor:
    nodes, scores = nodes_of(head, f_i), scores_of(head, f_i)
    out = []
    for k_to in range(head.parts):
        related = sum(scores[k][k_to] * nodes[k] for k in range(head.parts))
        both = torch.cat([nodes[k_to], related])
        out += [(head.merge_weight[o] * both).sum() + head.merge_bias[o] for o in range(len(nodes[0]))]
    return torch.stack(out)


def errors_of(method: Any, nodes: list[Tensor], f_i: Tensor) -> list[Tensor]:
    parts = cut(f_i.detach(), len(nodes))
    return [((linear(method.decoder, k, nodes[k].detach()) - parts[k]) ** 2).mean() for k in range(len(nodes))]


def branch_of(errors: list[Tensor]) -> int:
    values = [r.item() for r in errors]
    return values.index(min(values))


def base(objective: Any, z: Tensor, y: list[int], generator: Generator | None) -> Tensor:
    tuples = None
    if objective.miner is not None:
        tuples = objective.miner(z, torch.tensor(y), generator=generator)
    return ORACLES[objective.loss.name](objective.loss, z, y, tuples)


def drml(head: Any, method: Any, f: Tensor, y: list[int], generator: Generator | None = None) -> Tensor:
    """The loss of a batch of pooled features; chance is drawn for the whole first, then branch after branch."""
    nodes = [nodes_of(head, f_i) for f_i in f]
    errors = [errors_of(method, n_i, f_i) for n_i, f_i in zip(nodes, f, strict=True)]
    value = method.w_rep * base(method.whole, torch.stack([embedding_of(head, f_i) for f_i in f]), y, generator)
    value = value + method.w_rec * sum(r for row in errors for r in row) / (len(f) * head.parts)
    for k, branch in enumerate(method.branches):
        own = [i for i, row in enumerate(errors) if branch_of(row) == k]
        if len(own) > 1:
            value = value + base(branch, torch.stack([nodes[i][k] for i in own]), [y[i] for i in own], generator)
    return value
