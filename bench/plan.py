"""What it costs to plan a large study: `OMP_NUM_THREADS=1 python bench/plan.py`.

2,000 cells (10 losses x 5 dimensions x 4 folds x 10 seeds) on a folder of 100,000 made-up images in 1,000 classes, with
a file of weights. Every cell is read, prepared and named, and stays in memory, as in a study that is about to begin.
The images are links to a few tiny files, so that it is the planning that is timed and not the disk; they are hashed
beforehand, as every image is once in its life. Printed are the seconds of each step and the peak of resident memory, in
a process of its own.
"""

import argparse
import cProfile
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from PIL import Image

from nearkin.models.build import create_backbone
from nearkin.runs.prepare import Data, prepare
from nearkin.studies.grid import read_study
from nearkin.units import BYTES

LOSSES = (
    "contrastive",
    "triplet",
    "margin",
    "multi_similarity",
    "npair",
    "fastap",
    "lifted_structure",
    "proxy_anchor",
    "proxy_nca",
    "softmax",
)
LINKS = 20_000  # a file system allows so many names for one file


def make_images(root: Path, images: int, classes: int) -> None:
    """A folder per class, its images links to a few tiny files."""
    for i in range(images):
        folder = root / f"class{i % classes:04d}"
        if i < classes:
            folder.mkdir(parents=True)
        if i % LINKS == 0:
            source = root.parent / f"{i}.png"
            Image.new("RGB", (1, 1), (i // LINKS % 256, 0, 0)).save(source)
        os.link(source, folder / f"{i}.png")


def make_study(folder: Path, backbone: str) -> Path:
    """The file of a study of 2,000 cells."""
    methods = "\n".join(f"    {loss}: {{loss: {loss}}}" for loss in LOSSES)
    path = folder / "study.yaml"
    path.write_text(f"""
name: plan
base: {{dataset: folder, root: {folder / "images"}, data.size: 32, data.cache: none, protocol: kfold,
        backbone: {backbone}, weights: {folder / "weights.pt"}, sampler: balanced, epochs: 10, train.batch: 80}}
axes:
  method:
{methods}
  dim: [32, 64, 128, 256, 512]
seeds: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
folds: [0, 1, 2, 3]
baselines: none
""")
    return path


def plan(path: Path, count: int, profile: bool) -> None:
    """Read the study and prepare its first `count` cells; print what that takes."""
    known: dict[str, Data] = {}
    start = time.perf_counter()
    study = read_study(path)
    cells = study.cells[:count]
    read = time.perf_counter()
    prepared = [prepare(cells[0].spec, known)]
    names = {prepared[0].hash}
    first = time.perf_counter()
    with cProfile.Profile() if profile else nullcontext() as profiler:
        for cell in cells[1:]:
            prepared.append(prepare(cell.spec, known))
            names.add(prepared[-1].hash)
    end = time.perf_counter()
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(50)
    assert len(names) == len(cells)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    each = (end - first) / max(len(cells) - 1, 1)
    print(f"{len(cells):,} cells of {len(prepared[0].pixels):,} images")
    print(f"  the study read          {read - start:7.2f} s")
    print(f"  the first cell prepared {first - read:7.2f} s")
    print(f"  the others              {end - first:7.2f} s, {each * 1000:.2f} ms each")
    print(
        f"  all                     {end - start:7.2f} s ({time.process_time():.2f} s of CPU), peak {BYTES.text(peak)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--cells", type=int, default=2_000)
    parser.add_argument("--backbone", default="resnet50")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--study", type=Path, help="plan this study, in this process")
    settings = parser.parse_args()
    if settings.study is not None:
        return plan(settings.study, settings.cells, settings.profile)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_images(folder / "images", settings.images, settings.classes)
        torch.save(create_backbone(settings.backbone).network.state_dict(), folder / "weights.pt")
        again = [sys.executable, __file__, "--study", make_study(folder, settings.backbone), "--cells"]
        environment = {**os.environ, "NEARKIN_CACHE": str(folder / "cache")}
        subprocess.run([*again, "1"], env=environment, check=True, stdout=subprocess.DEVNULL)  # images are hashed
        more = ["--profile"] if settings.profile else []
        subprocess.run([*again, str(settings.cells), *more], env=environment, check=True)


if __name__ == "__main__":
    main()
