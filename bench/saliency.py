"""Saliency maps of test images against the bare forward and backward passes that they need. Bar: 0.9.

    make bench-saliency                         # CUB where NEARKIN_CUB names its folder, else glyphs; 200 images
    python bench/saliency.py --images 8         # a small one

EfficientNet-Lite0 at 128 pixels, 50 noisy copies per image, one thread, process CPU time, image by image in turns. The
bare passes embed as many copies, in batches of the same size, and take the gradient of the same measure to the input;
they draw no noise, cut no batches, sum nothing up. `folded`: with the folded network that the maps are computed with;
`plain`: with the model as it is stored.
"""

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from nearkin.analysis._saliency_maps import COPIES, PIXELS, compared, each_map, network
from nearkin.analysis.embedded import Loaded, from_input
from nearkin.data import PixelSource, load_table, open_images
from nearkin.engine.allocator import skip_memory_fill, tune_allocator
from nearkin.models import build_model

SIDE, FEW, MEASURE = 128, 8, "cosine"


def pixels() -> tuple[str, PixelSource, np.ndarray]:
    """Name, images and their rows: the second half of the classes."""
    root = os.environ.get("NEARKIN_CUB")
    table = load_table("cub", root) if root else load_table("glyphs", size=SIDE, classes=20, per_class=20)
    rows = np.flatnonzero(table.labels >= len(table.classes) // 2)
    images = table if table.images is not None else open_images(table, resize=SIDE)
    return table.name, PixelSource(images, size=SIDE, crop=SIDE, augment=table.augment), rows


def seconds(run) -> float:
    """CPU time of one call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def bare(embed, ready, count, reference) -> None:
    """Forward and backward of `count` copies in batches that are ready, without anything else."""
    with skip_memory_fill():
        for start in range(0, count, len(ready)):
            own = ready[: count - start].detach().requires_grad_()
            torch.autograd.grad(compared(MEASURE, embed(own), reference).sum(), own)


def noisy(x) -> torch.Tensor:
    """One batch of copies of an image."""
    batch = x[:1] + 0.15 * (x[0].max() - x[0].min()) * torch.randn(PIXELS // SIDE**2, *x.shape[1:])
    return batch.contiguous(memory_format=torch.channels_last)


def main() -> None:
    """All in turns, over groups of images."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=200)
    count = parser.parse_args().images
    torch.set_num_threads(1)
    tune_allocator()
    name, source, rows = pixels()
    rows = rows[np.linspace(0, len(rows) - 1, count).astype(int)]
    model = build_model(backbone="efficientnet_lite0", weights="imagenet", dim=128).eval().requires_grad_(False)
    seen = Loaded(model, source, rows, np.zeros(count), np.full(count, "both"), torch.device("cpu"))
    embed, reference = network(seen, rows[:1])
    list(each_map(seen, rows[:2], MEASURE, 0))  # the first call is slower
    spent = {"maps": 0.0, "folded": 0.0, "plain": 0.0}
    for start in range(0, count, FEW):
        own = rows[start : start + FEW]
        ready, many = noisy(model.record.normalise(source.test(own))), len(own) * COPIES
        spent["folded"] += seconds(lambda x=ready, n=many: bare(embed, x, n, reference))
        spent["maps"] += seconds(lambda own=own: list(each_map(seen, own, MEASURE, 0)))
        spent["plain"] += seconds(lambda x=ready, n=many: bare(lambda y: from_input(model, y), x, n, reference))
    copies = count * COPIES
    table = Table(
        "", "copies per CPU second", "maps / bare", title=f"{name}: {count} images x {COPIES} copies, {SIDE} pixels"
    )
    for what, time_ in spent.items():
        share = "" if what == "maps" else f"{time_ / spent['maps']:.2f}"
        table.add_row(f"bare, {what}" if what != "maps" else "maps", f"{copies / time_:.1f}", share)
    Console().print(table)


if __name__ == "__main__":
    main()
