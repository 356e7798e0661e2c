"""Peak memory of a training step: a batch of 128, one of 2,048, and 2,048 in two passes over chunks of 128.

    OMP_NUM_THREADS=1 python bench/chunks.py

Each step runs in a process of its own; the figure is the peak of the resident memory beyond that before the step.
"""

import resource
import subprocess
import sys
import time

CASES = {"batch 128": (128, None), "batch 2048": (2048, None), "batch 2048, chunks of 128": (2048, 128)}
NETWORKS = {"convnet, 32 px": ("convnet", 32), "resnet50, 64 px": ("resnet50", 64)}


def measure(backbone: str, side: int, batch: int, chunk: int | None) -> None:
    import torch

    from nearkin.engine.gradient import batch_loss
    from nearkin.engine.objective import build_objective
    from nearkin.models import build_model

    torch.manual_seed(0)
    model = build_model(backbone=backbone, dim=128, freeze_bn=True)
    objective = build_objective(loss=("multi_similarity", {}), num_classes=100, dim=128)
    labels = torch.arange(batch) % 100

    def step(images: torch.Tensor, labels: torch.Tensor, chunk: int | None) -> None:
        loss, _, finish = batch_loss(
            model,
            objective,
            images,
            labels,
            chunk=chunk,
            mix=None,
            generator=torch.Generator(),
            memory=None,
            reseed=lambda c: None,
        )
        loss.backward()
        finish()

    images = torch.randint(0, 255, (batch, 3, side, side), dtype=torch.uint8)
    step(images[:4], labels[:4], None)  # buffers of the libraries, gradients
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    step(images, labels, chunk)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, time.perf_counter() - began)


def main() -> None:
    print(f"{'network':18}{'step':30}{'peak MiB':>10}{'seconds':>10}")
    for network, (backbone, side) in NETWORKS.items():
        for case, (batch, chunk) in CASES.items():
            call = [sys.executable, __file__, backbone, str(side), str(batch), str(chunk or 0)]
            done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode:
                print(f"{network:18}{case:30}{'failed':>10}  {done.stderr.strip().splitlines()[-1:]}")
                continue
            peak, seconds = map(float, done.stdout.split())
            print(f"{network:18}{case:30}{peak:10.0f}{seconds:10.1f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) or None)
    else:
        main()
