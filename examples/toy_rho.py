"""Two toys in the plane: does ρ-switching keep unseen classes from collapsing?

    python examples/toy_rho.py --seeds 30 --out docs/images       # 3.5 minutes of one core

A network of 2-30-30-2 units learns four lines of the plane (the training classes) with the contrastive loss, and is
then shown four other lines (the test classes) that differ in a direction which training could ignore. Five modes have
the same data, initial weights and batches; only the objective differs. The table is the median over the seeds, the
pictures show for each mode the seed with the median test spread. What is seen: docs/toys.md.

The diagonal toy is that of Roth et al. 2020 (ICML). Its public script calls a branch 'regularised' that has no
attraction between members of a class at all; here that branch and true ρ-switching are told apart.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from toy_report import draw, table

from nearkin import evaluate
from nearkin.engine.objective import Objective
from nearkin.evaluation.metrics import rho, singular_values
from nearkin.losses import Contrastive
from nearkin.miners import All
from nearkin.numerics import unit
from nearkin.regularisers import Rho

POINTS = 15  # of each line, drawn without replacement from 100 equispaced ones
BATCH = 24
STEPS = 200
LR = 0.03
MARGIN = 0.1

Segment = tuple[tuple[float, float], tuple[float, float]]  # from (x, y) to (x, y)


@dataclass(frozen=True)
class Toy:
    name: str
    train: list[Segment]
    test: list[Segment]


TOYS = (
    Toy(
        "diagonal",
        train=[((a, a), (b, b)) for a, b in ((0.1, 0.3), (0.35, 0.55), (0.6, 0.8), (0.85, 1.05))],
        test=[((0.2, 0.2), (0.2, 0.4)), ((0.2, 0.55), (0.2, 0.85)), ((0.4, 0.2), (0.6, 0.2)), ((0.7, 0.2), (0.9, 0.2))],
    ),
    Toy(
        "vertical",
        train=[((x, 0.1), (x, 1.05)) for x in (0.2, 0.45, 0.7, 0.95)],
        test=[((0.3, y), (0.85, y)) for y in (0.2, 0.45, 0.7, 0.95)],
    ),
)


@dataclass(frozen=True)
class Mode:
    label: str
    attraction: bool
    p_switch: float

    def objective(self) -> Objective:
        # No chord of the unit circle is longer than 2: beyond that the attraction [d_ap - m₊]₊ is always 0.
        loss = Contrastive(pos_margin=0.0 if self.attraction else 2.1, neg_margin=MARGIN)
        return Objective(loss, All(), [Rho(p_switch=self.p_switch)] if self.p_switch else [])


MODES = (
    Mode("base", attraction=True, p_switch=0),
    Mode("script's “regularised”: no attraction, p = .001", attraction=False, p_switch=0.001),
    Mode("no attraction, no switching", attraction=False, p_switch=0),
    Mode("true ρ-switching, p = .001", attraction=True, p_switch=0.001),
    Mode("true ρ-switching, p = .3", attraction=True, p_switch=0.3),
)


class Result(NamedTuple):
    train_spread: float  # degrees
    test_spread: float
    share: float  # of the first of the two singular values, training set
    rho: float  # spectral decay of the training set, both singular values
    nearest: float  # test points whose nearest other test point is of their class


def sample(segments: list[Segment]) -> tuple[Tensor, Tensor]:
    points = []
    for start, end in segments:
        t = torch.linspace(0, 1, 100)[torch.randperm(100)[:POINTS], None]  # (15, 1)
        points.append(torch.tensor(start) + t * (torch.tensor(end) - torch.tensor(start)))  # (15, 2)
    return torch.cat(points), torch.arange(len(segments)).repeat_interleave(POINTS)  # (60, 2), (60,)


@dataclass(frozen=True)
class Run:
    train_x: Tensor  # (60, 2)
    test_x: Tensor  # (60, 2)
    train_z: Tensor  # (60, 2), on the circle
    test_z: Tensor  # (60, 2), on the circle
    labels: Tensor  # (60,) of either set

    def result(self) -> Result:
        sigma = singular_values(self.train_z)
        return Result(
            spread(self.train_z),
            spread(self.test_z),
            float(sigma[0] / sigma.sum()),
            rho(self.train_z, drop=0),
            evaluate(self.test_z, self.labels, metrics=["p@1"]).metrics["p@1"],
        )


def run(toy: Toy, mode: Mode, seed: int) -> Run:
    """Data, weights and batches come from the global generator, switching from one of its own: the modes of a seed
    differ in their objective alone."""
    torch.manual_seed(seed)
    (train_x, labels), (test_x, _) = sample(toy.train), sample(toy.test)
    net = nn.Sequential(nn.Linear(2, 30), nn.ReLU(), nn.Linear(30, 30), nn.ReLU(), nn.Linear(30, 2))
    objective, switching = mode.objective(), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(net.parameters(), lr=LR, fused=True)
    for _ in range(STEPS):
        rows = torch.randperm(len(train_x))[:BATCH]
        optimiser.zero_grad()
        objective(net(train_x[rows]), labels[rows], switching).backward()
        optimiser.step()
    with torch.no_grad():
        return Run(train_x, test_x, unit(net(train_x)), unit(net(test_x)), labels)


def spread(e: Tensor) -> float:
    """Mean angle, in degrees, between the points of a set and their mean direction."""
    cosine = e.double() @ unit(e.double().mean(0))  # (60,)
    return float(torch.rad2deg(cosine.clamp(-1, 1).acos()).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="Collapse of unseen classes in two toys, with and without ρ-switching")
    parser.add_argument("--seeds", type=int, default=30, help="how many (default: 30)")
    parser.add_argument("--out", type=Path, help="folder of the pictures toy_<name>.png (default: no pictures)")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error(f"--seeds {arguments.seeds}: at least 1")
    torch.set_num_threads(1)
    for toy in TOYS:
        jobs = [(mode, seed) for mode in MODES for seed in range(arguments.seeds)]
        bar = track(jobs, f"{toy.name} toy", console=Console(stderr=True), transient=True)
        runs = [run(toy, mode, seed) for mode, seed in bar]
        results = np.array([r.result() for r in runs]).reshape(len(MODES), arguments.seeds, -1)
        table(toy.name, [mode.label for mode in MODES], results)
        if arguments.out:
            typical = np.argsort(results[:, :, 1], axis=1, kind="stable")[:, (arguments.seeds - 1) // 2]  # (modes,)
            panels = [
                (mode.label, runs[i * arguments.seeds + seed], Result(*results[i, seed]))
                for i, (mode, seed) in enumerate(zip(MODES, typical, strict=True))
            ]
            print(f"\npicture: {draw(toy.name, panels, arguments.out)}")


if __name__ == "__main__":
    main()
