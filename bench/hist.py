"""What a HIST step costs over a ProxyAnchor step, at B = 32, D = 512, C = 100.

    OMP_NUM_THREADS=1 python bench/hist.py

Alone: forward and backward of the loss. Around a network: ResNet50 (random weights, 224 px, training mode), head, loss,
backward. One thread, process CPU time, the two interleaved and taking turns in going first; the ratio is the median
over the pairs. The bar: at most 1.05 with the network around it.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from nearkin.losses import HIST, Loss, ProxyAnchor
from nearkin.models import build_model

BATCH, DIM, CLASSES, PIXELS, BAR = 32, 512, 100, 224, 1.05


def compare(what: str, steps: dict[str, Callable[[], object]], pairs: int) -> float:
    """Median of the ratios of neighbouring runs, second over first."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()  # first-call costs are nobody's
    for turn in range(pairs):
        for name in list(steps)[:: 1 if turn % 2 else -1]:
            began = time.process_time()
            steps[name]()
            times[name].append(time.process_time() - began)
    base, other = times.values()
    ratios = sorted(b / a for a, b in zip(base, other, strict=True))
    medians = ", ".join(f"{name} {1e3 * statistics.median(spent):.2f} ms" for name, spent in times.items())
    ratio = statistics.median(ratios)
    print(f"{what}: {medians}; ratio {ratio:.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f}, {pairs} pairs)", flush=True)
    return ratio


def both() -> dict[str, Loss]:
    torch.manual_seed(0)
    return {"ProxyAnchor": ProxyAnchor(CLASSES, DIM), "HIST": HIST(CLASSES, DIM)}


def alone(loss: Loss, labels: torch.Tensor) -> Callable[[], object]:
    z = torch.nn.functional.layer_norm(torch.randn(BATCH, DIM), (DIM,)).requires_grad_()
    wanted = [z, *loss.parameters()]
    return lambda: torch.autograd.grad(loss(z, labels), wanted)


def with_network(loss: Loss, labels: torch.Tensor, images: torch.Tensor) -> Callable[[], object]:
    torch.manual_seed(0)
    model = build_model(backbone="resnet50", pool="both", dim=DIM, norm=loss.norm)  # type: ignore[arg-type]
    wanted = [*model.parameters(), *loss.parameters()]
    return lambda: torch.autograd.grad(loss(model(images).z, labels), wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6, help="with the network; 0 leaves it out")
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    torch.manual_seed(0)
    labels = torch.randint(CLASSES, (BATCH,))
    print(f"torch {torch.__version__}, one thread, B = {BATCH}, D = {DIM}, C = {CLASSES}")
    compare("loss alone", {name: alone(loss, labels) for name, loss in both().items()}, 300)
    if pairs:
        images = torch.randint(256, (BATCH, 3, PIXELS, PIXELS), dtype=torch.uint8)
        steps = {name: with_network(loss, labels, images) for name, loss in both().items()}
        ratio = compare("with ResNet50 around it", steps, pairs)
        print(f"bar {BAR}: {'kept' if ratio <= BAR else 'missed'}")


if __name__ == "__main__":
    main()
