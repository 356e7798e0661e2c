"""Embedding and training of EfficientNet-Lite0 at 128 and 112 px: as it is, against the plain way it was before.

    make bench-embed

The plain way: memory of every tensor is fetched anew, new memory is filled with NaN, BatchNorm is a step of its own,
and 256 images are embedded at a time. Random pixels, one thread, process CPU time, minimum of several repeats. The two
ways run in processes of their own, in turns, because the allocator is set for a whole process.
"""

import json
import subprocess
import sys
import time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import nearkin
from nearkin.engine import embed as embedding
from nearkin.engine.allocator import skip_memory_fill, tune_allocator
from nearkin.models import build_model

IMAGES, BATCH, ROUNDS, REPEATS = 512, 96, 3, 4


class Pixels:
    """Random images by row."""

    def __init__(self, size: int):
        self.x = torch.randint(0, 255, (IMAGES, 3, size, size), dtype=torch.uint8)

    def test(self, rows: np.ndarray) -> torch.Tensor:
        return self.x[torch.from_numpy(rows)]


def embed_plainly(model, source, rows):
    """As commit b58c777 did: 256 images at a time, nothing folded."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(source.test(rows[i : i + 256])).z.float() for i in range(0, len(rows), 256)])


def measure(way: str) -> dict[str, float]:
    """Images per CPU second of embedding and of training, and two numbers to compare the results by."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)  # as in a run
    if way == "now":
        tune_allocator()
    model = build_model(backbone="efficientnet_lite0", weights="imagenet", dim=512, pool="both", freeze_bn=True)
    source, rows, device = Pixels(128), np.arange(IMAGES), torch.device("cpu")
    run = (
        (lambda: embedding.embed(model, source, rows, device))
        if way == "now"
        else (lambda: embed_plainly(model, source, rows))
    )
    embed_seconds, z = best(run)
    model.train()
    loss = nearkin.losses.ProxyAnchor(100, 512)
    optimiser = torch.optim.AdamW([*model.parameters(), *loss.parameters()], lr=3e-4)
    x, y = Pixels(112).x[:BATCH], torch.arange(BATCH) % 100

    def step():
        value = loss(model(x).z, y)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        return value.detach()

    if way == "now":
        with skip_memory_fill():
            train_seconds, value = best(step)
    else:
        train_seconds, value = best(step)
    unit = torch.nn.functional.normalize(z)
    return {
        "embedding": IMAGES / embed_seconds,
        "training": BATCH / train_seconds,
        "loss": float(value),
        "z": unit[:4, :8].flatten().tolist(),
    }


def best(run):
    """The least CPU time of several calls, and what the last one gave."""
    least, result = np.inf, None
    for _ in range(REPEATS):
        began = time.process_time()
        result = run()
        least = min(least, time.process_time() - began)
    return least, result


def main() -> None:
    """Both ways in turns."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    found = {"plain": [], "now": []}
    for _ in range(ROUNDS):
        for way, results in found.items():
            told = subprocess.run([sys.executable, __file__, way], capture_output=True, text=True, check=True).stdout
            results.append(json.loads(told.splitlines()[-1]))
    table = Table("images per CPU second", "plain", "now", "now / plain", title="EfficientNet-Lite0, one thread")
    for what in ("embedding", "training"):
        plain, now = (max(r[what] for r in found[way]) for way in ("plain", "now"))
        table.add_row(what, f"{plain:.1f}", f"{now:.1f}", f"{now / plain:.2f}")
    Console().print(table)
    apart = max(abs(a - b) for a, b in zip(found["plain"][0]["z"], found["now"][0]["z"], strict=True))
    same = found["plain"][0]["loss"] == found["now"][0]["loss"]
    print(f"embeddings differ by {apart:.1e} at most (unit vectors); losses after {REPEATS} steps are equal: {same}")


if __name__ == "__main__":
    main()
