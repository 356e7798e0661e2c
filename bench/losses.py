"""Losses against pytorch-metric-learning, forward and backward: `make bench-losses`.

One thread, process CPU time, both sides interleaved, the minimum of several repeats. Like with like: the same pairs, or
the same number of triplets, on both sides. Memory is the peak of what the allocator hands out during a step, exact.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from pytorch_metric_learning import distances
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning import miners as pml_miners
from torch import Tensor, nn

from nearkin import losses, miners
from nearkin.engine.objective import Objective, build_objective
from nearkin.pairs import Couples, Pairs, Triplets
from nearkin.registry import LOSSES

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from memory import peak_bytes

Step = Callable[[], object]
SIZES = (112, 512)
MEMORY_BATCH, MEMORY_BAR, MEMORY_BARS = 2048, 120, {"angular": 200, "snr_contrastive": 200, "snr_triplet": 200}
CLASSES = 11318  # Stanford Online Products' training classes


@dataclass
class Case:
    name: str
    ours: Callable[[], nn.Module]
    theirs: Callable[[], Callable]
    bar: float  # at B = 512; at B = 112 it is 1
    per_class: int = 4
    dim: int = 128
    proxies: bool = False


class AllCouples(nn.Module):
    """Every positive pair, as theirs takes them."""

    def __init__(self, loss: losses.Loss):
        super().__init__()
        self.loss = loss

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        pairs = Pairs.of(z, y)
        return self.loss(pairs, None, Couples(*pairs.positive.nonzero(as_tuple=True)))


class WithMiner(nn.Module):
    def __init__(self, loss: nn.Module, miner: Callable):
        super().__init__()
        self.loss, self.miner = loss, miner

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        return self.loss(z, y, self.miner(z, y))


def twice(miner: miners.Miner) -> Callable[[Tensor, Tensor], Triplets]:
    def mine(z: Tensor, y: Tensor) -> Triplets:
        pairs = Pairs.of(z.detach(), y)
        return Triplets(*(torch.cat(parts) for parts in zip(miner(pairs), miner(pairs), strict=True)))

    return mine


def pair_cases() -> Iterator[Case]:
    raw = {"distance": distances.LpDistance(normalize_embeddings=False)}
    dot = {"distance": distances.DotProductSimilarity(normalize_embeddings=False)}
    semihard = miners.Semihard(margin=0.2, every=True)
    active = {"squared": False, "reduction": "mean_active"}
    yield Case("nt_xent", losses.NTXent, pml.NTXentLoss, 500)
    yield Case("lifted_structure", losses.LiftedStructure, pml.LiftedStructureLoss, 500)
    yield Case("histogram", lambda: losses.Histogram(nodes=101), lambda: pml.HistogramLoss(n_bins=100), 50)
    yield Case("snr_contrastive", losses.SNRContrastive, pml.SignalToNoiseRatioContrastiveLoss, 30)
    yield Case(
        "margin + distance_weighted",
        lambda: WithMiner(losses.Margin(per_class=False), twice(miners.DistanceWeighted(upper=1.4))),
        lambda: WithMiner(pml.MarginLoss(learn_beta=True), pml_miners.DistanceWeightedMiner()),
        10,
        per_class=2,  # theirs draws as many an anchor as its class has
    )
    yield Case("triplet, all", lambda: losses.Triplet(margin=0.05, **active), pml.TripletMarginLoss, 10)
    yield Case(
        "triplet + semihard, all such",
        lambda: Objective(losses.Triplet(margin=0.2, **active), semihard),
        lambda: WithMiner(pml.TripletMarginLoss(margin=0.2), pml_miners.TripletMarginMiner(0.2, "semihard")),
        10,
    )
    yield Case("npair", lambda: losses.NPair(pairing="class", nu=0.0), lambda: pml.NPairsLoss(**dot), 2)
    yield Case("fastap", losses.FastAP, pml.FastAPLoss, 2)
    yield Case(
        "multi_similarity + miner",
        lambda: Objective(losses.MultiSimilarity(), miners.MultiSimilarity()),
        lambda: WithMiner(pml.MultiSimilarityLoss(beta=40), pml_miners.MultiSimilarityMiner()),
        2.5,
    )
    yield Case(
        "generalized_lifted",
        lambda: losses.GeneralizedLifted(nu=0.0),
        lambda: pml.GeneralizedLiftedStructureLoss(**raw),
        2,
    )
    yield Case(
        "angular", lambda: AllCouples(losses.Angular(alpha=40.0, lam=1.0, npair=0.0, nu=0.0)), pml.AngularLoss, 1.3
    )
    yield Case("contrastive", losses.Contrastive, pml.ContrastiveLoss, 1.0)


def proxy_cases() -> Iterator[Case]:
    size = (CLASSES, 512)
    common = {"dim": 512, "proxies": True}
    yield Case("proxy_anchor", lambda: losses.ProxyAnchor(*size), lambda: pml.ProxyAnchorLoss(*size), 2, **common)
    yield Case("arcface", lambda: losses.ArcFace(*size), lambda: pml.ArcFaceLoss(*size), 1.3, **common)
    yield Case("cosface", lambda: losses.CosFace(*size), lambda: pml.CosFaceLoss(*size), 1.3, **common)
    yield Case(
        "norm_softmax", lambda: losses.NormSoftmax(*size), lambda: pml.NormalizedSoftmaxLoss(*size), 1.3, **common
    )
    yield Case(
        "proxy_nca_pp",
        lambda: losses.ProxyNCApp(*size),
        lambda: pml.ProxyNCALoss(*size, softmax_scale=9),
        1.3,
        **common,
    )
    yield Case(
        "soft_triple, K = 2",
        lambda: losses.SoftTriple(*size, tau=0.0),
        lambda: pml.SoftTripleLoss(*size, centers_per_class=2),
        1.3,
        **common,
    )


def step(loss: Callable, z: Tensor, y: Tensor) -> Step:
    wanted = [z, *(p for p in loss.parameters() if p.requires_grad)]
    return lambda: torch.autograd.grad(loss(z, y), wanted, allow_unused=True)


def batch(b: int, dim: int, per_class: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(b, dim, generator=generator).requires_grad_(), torch.arange(b) // per_class


def race(ours: Step, theirs: Step, seconds: float) -> tuple[float, float]:
    """Best CPU time of each, in seconds; a side that alone fills the time runs once."""
    best = [float("inf"), float("inf")]
    ours()  # first-call costs are nobody's
    spent = 0.0
    for repeat in range(200):
        for side, run in enumerate((ours, theirs)):
            start = time.process_time()
            run()
            took = time.process_time() - start
            best[side] = min(best[side], took)
            spent += took
        if spent > seconds and (repeat >= 2 or spent > 5 * seconds):
            break
    return best[0], best[1]


def speed(cases: Iterator[Case], only: str, seconds: float) -> int:
    print(f"{'loss':30}{'B':>6}{'ours, ms':>11}{'theirs, ms':>12}{'ratio':>9}{'bar':>7}")
    missed = 0
    for case in cases:
        if only not in case.name:
            continue
        for b in SIZES:
            z, y = batch(b, case.dim, case.per_class)
            ours, theirs = race(step(case.ours(), z, y), step(case.theirs(), z, y), seconds)
            bar = case.bar if b == 512 else 1.0
            missed += theirs / ours < bar
            mark = "" if theirs / ours >= bar else "  below the bar"
            times = f"{1e3 * ours:11.2f}{1e3 * theirs:12.2f}{theirs / ours:9.2f}"
            print(f"{case.name:30}{b:6}{times}{bar:7.1f}{mark}", flush=True)
    return missed


def memory(only: str) -> int:
    print(f"\nPeak extra memory of a step, B = {MEMORY_BATCH}, D = 128, four samples a class")
    print(f"{'loss':30}{'MB':>11}{'bar':>7}")
    missed = 0
    for name in LOSSES.names():
        if only not in name:
            continue
        loss = build_objective(loss=(name, {}), num_classes=MEMORY_BATCH // 4, dim=128)
        if isinstance(loss.loss, losses.ProxyLoss):
            continue
        z, y = batch(MEMORY_BATCH, 128, 4)
        peak = peak_bytes(step(loss, z, y)) / 1e6
        bar = MEMORY_BARS.get(name, MEMORY_BAR)
        missed += peak > bar
        print(f"{name:30}{peak:11.1f}{bar:7}{'  above the bar' if peak > bar else ''}", flush=True)
    return missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds a row")
    parser.add_argument("--part", choices=["pairs", "proxies", "memory", "all"], default="all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; ratio = time of pytorch-metric-learning / ours\n")
    failed = 0
    if options.part in ("pairs", "all"):
        failed += speed(pair_cases(), options.only, options.seconds)
    if options.part in ("proxies", "all"):
        print(f"\nProxy losses, C = {CLASSES}, D = 512")
        failed += speed(proxy_cases(), options.only, options.seconds)
    if options.part in ("memory", "all"):
        failed += memory(options.only)
    print(f"\nfigures on the wrong side of their bar: {failed}")
