"""The input pipeline alone: images per second, cut at 224 px from decoded images, and what a second thread adds.

    make bench-input

Made-up images, shorter side 256, in a mapped file as the decoded cache has them; random resized crops of the default
scale in batches of 96, loaded as training loads them (engine/batches.py); 0 threads: by the caller. Numbers of threads
take turns, the least wall time of each counts. The bar: 2 threads load at least 1.7 times as many images as 1, on two
idle cores. On a busy machine the growth says how busy it is; the load is printed for that.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table

from nearkin.data import Augment, Decoded, PixelSource
from nearkin.engine.allocator import tune_allocator
from nearkin.engine.batches import load_batches
from nearkin.samplers import Random

IMAGES, BATCH, BATCHES, SIZE, RESIZE = 480, 96, 4, 224, 256
BAR = 1.7


def made_up(folder: Path) -> Decoded:
    """Smooth images in a mapped file, upright and lying."""
    rng = np.random.default_rng(0)
    shapes = np.array([(RESIZE, 341), (341, RESIZE), (RESIZE, 384), (RESIZE, RESIZE)] * (IMAGES // 4))
    with open(folder / "pixels.bin", "wb") as file:
        for height, width in shapes:
            coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
            file.write(np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).tobytes())
    return Decoded(np.memmap(folder / "pixels.bin", np.uint8, "r"), shapes, np.arange(IMAGES))


def seconds(source: PixelSource, loaders: int) -> float:
    """Wall time from the first batch that is asked for to the last that is there."""
    sampler = Random(np.zeros(IMAGES), BATCH, 0)
    batches = load_batches(sampler, source, np.arange(IMAGES), 0, 0, loaders=loaders)
    began = time.perf_counter()
    for _ in range(BATCHES):
        next(batches)
    spent = time.perf_counter() - began
    batches.close()
    return spent


def main() -> None:
    """All numbers of threads, in turns."""
    parser = argparse.ArgumentParser(description="images per second of the input pipeline")
    parser.add_argument("--rounds", type=int, default=40, help="how often the numbers of threads take turns")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    tune_allocator()  # as every run does
    kinds = {"resized_crop": Augment(), "resize_crop": Augment(kind="resize_crop")}
    with tempfile.TemporaryDirectory() as folder:
        images = made_up(Path(folder))
        table = Table("augment", "threads", "images/s", "per thread", "growth", "bar", title=f"{SIZE} px from {RESIZE}")
        for kind, augment in kinds.items():
            source = PixelSource(images, size=SIZE, crop=SIZE, augment=augment, resize=RESIZE)
            least = dict.fromkeys((0, 1, 2), np.inf)
            for _ in range(rounds):
                for loaders in least:
                    least[loaders] = min(least[loaders], seconds(source, loaders))
            for loaders, spent in least.items():
                rate = BATCH * BATCHES / spent
                growth = [f"{least[1] / spent:.2f}", f"{BAR}"] if loaders == 2 and kind == "resized_crop" else ["", ""]
                table.add_row(kind, str(loaders), f"{rate:,.0f}", f"{rate / max(1, loaders):,.0f}", *growth)
    Console().print(table)
    print(f"load of the machine, 1 minute: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")


if __name__ == "__main__":
    main()
