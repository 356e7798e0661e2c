"""A newcomer's first hour, as it really goes: makes docs/first-hour.md by running every command on a made-up folder.

    python examples/first_hour.py > docs/first-hour.md          (make first-hour; about two minutes)

The folder has nested splits, a duplicate across train and test, and a broken image.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

KINDS = {"train": 16, "valid": 4, "test": 10}  # classes of each split
ABOUT = """Made by `make first-hour` (examples/first_hour.py), which runs every command below on a folder of made-up
flowers: 20 images of each of 30 classes in train/, valid/ and test/, with one image copied from train to test and one
broken file. Nothing is edited; numbers and times are those of the machine that made the page.
"""
BIN = str(Path(sys.executable).parent)


def draw(rng: np.random.Generator, kind: int) -> Image.Image:
    """A tile with the pattern of its class: so many petals, in so many rings, of two colours; turned, moved, noisy."""
    look = np.random.default_rng(kind)
    first, second, ground = (tuple(int(c) for c in look.integers(0, 255, 3)) for _ in range(3))
    petals, rings = int(look.integers(3, 9)), int(look.integers(1, 4))
    image = Image.new("RGB", (96, 80), ground)
    pen = ImageDraw.Draw(image)
    cx, cy, turn, size = rng.uniform(35, 61), rng.uniform(30, 50), rng.uniform(0, 6.28), rng.uniform(0.7, 1.1)
    for ring in range(rings, 0, -1):
        for petal in range(petals):
            angle = turn + 6.283 * petal / petals + ring
            x, y, r = cx + 11 * ring * size * np.cos(angle), cy + 11 * ring * size * np.sin(angle), 7 * size
            pen.ellipse((x - r, y - r, x + r, y + r), fill=first if ring % 2 else second)
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.2)))).astype(float)
    pixels = pixels * rng.uniform(0.6, 1.3) + rng.normal(0, 14, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def make_folder(root: Path) -> None:
    """flowers/train|valid|test/CLASS/NUMBER.jpg, with two things wrong."""
    rng = np.random.default_rng(0)
    kind = 0
    for split, classes in KINDS.items():
        for _ in range(classes):
            folder = root / split / f"flower{kind:02d}"
            folder.mkdir(parents=True)
            for i in range(20):
                draw(rng, kind).save(folder / f"{i:02d}.jpg", quality=90)
            kind += 1
    (root / "test" / "flower20" / "07.jpg").write_bytes((root / "train" / "flower03" / "11.jpg").read_bytes())
    (root / "train" / "flower05" / "02.jpg").write_text("this is no image")


def run(command: str, *, stop_after: float | None = None) -> None:
    """Print a command and what it says, as a terminal of 110 columns shows it."""
    environment = {
        **os.environ,
        "COLUMNS": "110",
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "NEARKIN_CACHE": "cache",
        "OMP_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        shlex.split(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )
    print(f"```\n$ {command}")
    if stop_after is not None:
        while not list(Path("runs").glob("*/log.jsonl")):  # it is training
            time.sleep(0.1)
        time.sleep(stop_after)
        os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate()
    print("\n".join(line.rstrip() for line in said.rstrip().splitlines()))
    if stop_after is not None:
        print("(Ctrl-C was pressed here)")
    print(f"```\n{'' if process.returncode == 0 else f'(exit code {process.returncode})'}\n")


def main() -> None:
    """The hour."""
    print("# The first hour\n")
    print(ABOUT)
    train = "nearkin train dataset=folder root=flowers data.on_error=skip data.exclude=leave-out.txt epochs=30"
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        make_folder(Path("flowers"))
        print("## Is the folder in order?\n")
        run("nearkin data verify folder --root flowers")
        print("Two things are not. The copies are listed, to be left out; nothing is deleted.\n")
        run("nearkin data dedupe folder --root flowers -o leave-out.txt")
        run("nearkin train dataset=folder root=flowers data.exclude=leave-out.txt epochs=30")
        print("The error names the file and the way out.\n\n## Training, stopped and resumed\n")
        run(train, stop_after=2)
        run(train)
        print("The same command once more shows what is stored:\n")
        run(f"{train} --quiet")
        print("## What is there now\n")
        run("nearkin runs list")
        hashes = [p.parent.name for p in Path("runs").glob("*/spec.yaml") if "epochs: 30" in p.read_text()]
        print("## More metrics, in seconds\n")
        run(f"nearkin test {hashes[0]} --metrics nmi,recall@10")
        print("## New images\n")
        run(f"nearkin embed {hashes[0]} flowers/test -o emb.npz")
        run("nearkin evaluate emb.npz --k 1,2,4")
        print("What does a setting mean?\n")
        run("nearkin explain patience")


if __name__ == "__main__":
    main()
