"""What a kill costs: seconds of work lost at any moment of a run, and the seconds that its checkpoints take.

make bench-kills            a run of about a minute and a half on one thread
"""

import tempfile
import time

import torch

import nearkin
from nearkin.engine import loop
from nearkin.runs.run import Run

WORDS = {"dataset": "glyphs", "dim": 128, "epochs": 30, "train.device": "cpu"}


def measured(share: float) -> None:
    """Train once and note every checkpoint: a kill loses what was done since the last one was in its place."""
    loop.CHECKPOINT_SHARE = share
    save, began, spent, marks = Run.save, 0.0, 0.0, []

    def timed(run, name, state):
        nonlocal spent
        before = time.monotonic()
        save(run, name, state)
        if name == "checkpoint.pt":
            spent += time.monotonic() - before
            marks.append(time.monotonic())

    def watch(entry):
        nonlocal began
        if "plan" in entry:
            began = time.monotonic()

    Run.save = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as runs:
            nearkin.train(WORDS, runs=runs, watch=watch, test=False)
    finally:
        Run.save = save  # type: ignore[method-assign]
    ended = time.monotonic()
    gaps = [b - a for a, b in zip([began, *marks], [*marks, ended], strict=True)]
    mean = sum(gap * gap / 2 for gap in gaps) / sum(gaps)  # a kill at a moment drawn evenly
    print(
        f"{'at 30 s alone' if not share else 'and at the ends of epochs':<26} {ended - began:6.1f} s of training, "
        f"{len(marks):3} checkpoints, {1000 * spent / max(1, len(marks)):5.1f} ms each, "
        f"{100 * spent / (ended - began):.2f} % of the time; a kill loses {mean:.1f} s in the mean, "
        f"{max(gaps):.1f} s at worst"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    nearkin.train(WORDS | {"epochs": 0}, runs=tempfile.mkdtemp())  # draws the images
    for share in (0.0, loop.CHECKPOINT_SHARE):
        measured(share)
