"""Why does proxy_repel via the batch fail as it is printed? The size of its two gradients, from step to step.

    python examples/own_loss_gradients.py --runs runs          # six short runs on small glyphs, half a minute

Each row is one run: ConvNet, images of 16 px, 64 dimensions, 4 epochs, seed 0. Its columns are the norms of the
gradients of attraction and repulsion with respect to the unit embeddings of a batch: in the first step, and the median
over the second and over the last epoch; then the mean |s_ic| of samples and proxies in the last epoch. What is seen:
docs/results.md.
"""

import argparse

import numpy as np
import torch
from torch import Tensor

import nearkin
from nearkin.losses import ProxyRepel
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES

EPOCHS = 4
CLIP = {"train.clip": 1.0, "train.clip_by": "norm"}
ROWS = {
    "as printed": {},
    "as printed, clipped": CLIP,
    "divided": {"loss.scale": "mean"},
    "divided, clipped": {"loss.scale": "mean", **CLIP},
    "as printed, batches of 32": {"train.batch": 32},
    "divided, batches of 32": {"loss.scale": "mean", "train.batch": 32},
}
STEPS: list[list[float]] = []  # of every step: norms of attraction and repulsion, mean |s_ic|


@LOSSES.register("measured_proxy_repel")
class Measured(ProxyRepel):
    """proxy_repel, which notes the sizes of the gradients of its two terms in STEPS."""

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        e = pairs.e.detach().requires_grad_()  # (B, D)
        cosines, labels = self.cosines(Pairs(e, pairs.labels))  # (B, C)
        target = cosines.gather(1, labels[:, None])[:, 0]  # (B,)
        norms = [
            float(torch.autograd.grad(term, e, retain_graph=True)[0].norm())
            for term in (self.attract(target, labels), self.repel(cosines))
        ]
        STEPS.append([*norms, float(cosines.detach().abs().mean())])
        return super().compute(pairs, tuples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="runs")
    given = parser.parse_args()
    words = {"dataset": "glyphs", "data.size": 16, "backbone": "convnet", "dim": 64, "epochs": EPOCHS}
    moments = ("first step", "second epoch", "last epoch")
    lines = [
        f"| run | {' | '.join(f'{moment}: attraction, repulsion' for moment in moments)} | \\|s_ic\\| | "
        "validation recall@1 % |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for label, settings in ROWS.items():
        STEPS.clear()
        run = nearkin.train(words | settings | {"loss": "measured_proxy_repel"}, runs=given.runs, test=False)
        sizes = np.array(STEPS).reshape(EPOCHS, -1, 3)  # a run that is stored already has no steps to measure
        parts = [sizes[0, 0], np.median(sizes[1], axis=0), np.median(sizes[-1], axis=0)]
        recall = run.read_json("final.json")["validation"]["recall@1"]
        shown = " | ".join(f"{attract:.2g}, {repel:.2g}" for attract, repel, _ in parts)
        lines.append(f"| {label} | {shown} | {parts[-1][2]:.3f} | {100 * recall:.1f} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
