"""What planning costs: `OMP_NUM_THREADS=1 python bench/samplers.py`.

Data of the size of CUB-200-2011's training half (5,864 images of 100 classes, 512 dimensions, batches of 112), one
thread. Process CPU time of planning a pass, the minimum of several; the share is of the time that training
itself takes at 0.25 s a step. The bar is 10 %.
"""

import argparse
import time

import numpy as np
import torch

from nearkin.registry import SAMPLERS

IMAGES, CLASSES, DIM, BATCH = 5864, 100, 512, 112
STEP = 0.25


def planning_seconds(name: str, z: torch.Tensor, labels: np.ndarray, repeats: int) -> tuple[float, int]:
    sampler = SAMPLERS[name](labels, BATCH, 0)
    if sampler.needs_bank:
        sampler.fill(z)
    seconds = []
    for number in range(repeats):
        began = time.process_time()
        plan = sampler.plan(np.random.default_rng([0, number]))
        seconds.append(time.process_time() - began)
    return min(seconds), len(plan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    labels = np.arange(IMAGES) % CLASSES
    centres = torch.randn(CLASSES, DIM, generator=generator)
    z = centres[labels] + torch.randn(IMAGES, DIM, generator=generator)
    print(f"{IMAGES} images, {CLASSES} classes, {DIM} dimensions, batches of {BATCH}, one thread\n")
    print(f"{'sampler':<16} {'batches':>7} {'s a pass':>9} {'ms a batch':>11} {'share at 0.25 s':>16}")
    for name in SAMPLERS.names():
        seconds, batches = planning_seconds(name, z, labels, repeats)
        each = seconds / batches
        print(f"{name:<16} {batches:>7} {seconds:>9.3f} {1000 * each:>11.2f} {each / STEP:>16.1%}")


if __name__ == "__main__":
    main()
