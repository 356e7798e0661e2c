"""What a training shows while it runs: the plan, a bar, a line for every epoch, warnings. `nearkin train` shows it, and
`nearkin.train(..., watch=watch)` inside `with training_bar() as watch`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from nearkin.cache import cache_dir
from nearkin.progress import Lines, Screen, bar
from nearkin.runs import listing
from nearkin.runs.events import Watch
from nearkin.units import SHARE


@contextmanager
def training_bar(console: Console | None = None, quiet: bool = False) -> Iterator[Watch]:
    """A progress bar fed by the training loop; the plan, epochs and warnings are printed above it.

    Parameters:
        console: where it is; None: stderr.
        quiet: show nothing.
    """
    screen = console or Screen(stderr=True)

    def note(text: str | Text) -> None:
        if not quiet:
            screen.print(text, highlight=False, soft_wrap=True)

    with bar("training", console=screen, hide=quiet) as advance:
        drawn, total = 0.0, 0
        every = 0.1 if screen.is_terminal else 0.0  # lines keep their own time

        def watch(entry: dict[str, Any]) -> None:
            nonlocal drawn, total
            if "plan" in entry:
                total = entry["plan"]["steps"]
                for line in plan_lines(entry["plan"]):
                    note(line)
                if isinstance(advance, Lines):
                    advance.began = time.monotonic()  # decoding is over: training begins here
            elif "resumed" in entry:
                epoch = entry["resumed"]["epoch"]
                at = f"at epoch {epoch}" if epoch > 0 else "in the warm-up"
                note(f"resumed {at}, step {entry['resumed']['step']}")
            elif "epoch_end" in entry:
                epoch, epochs = entry["epoch_end"], entry["epochs"]
                scores = " ".join(f"{m} {SHARE.text(v)}" for m, v in entry.get("validation", {}).items())
                if epoch > 0:
                    note(f"epoch {epoch:>3}/{epochs}  {f'validation {scores}' if scores else 'no validation'}")
                else:
                    note("warm-up" + (f", {-epoch} epochs of it left" if epoch else ""))
                if "warning" in entry:
                    note(Text.assemble(("warning:", "yellow"), f" {entry['warning']}"))
            elif "step" in entry and time.monotonic() - drawn > every:
                drawn = time.monotonic()
                active = "" if entry["active"] is None else f", active {SHARE.text(entry['active'], digits=0)} %"
                at = listing.place(entry["epoch"], entry["epochs"])
                place = "" if screen.is_terminal else f"{at}, " if at == "warm-up" else f"epoch {at}, "
                speed = f"{entry['images_per_s']:.0f} images/s"
                advance(entry["step"], total, f"{place}loss {entry['loss']:.4g}{active}, {speed}")

        yield watch


def plan_lines(plan: dict[str, Any]) -> list[str]:
    """What is about to happen, in words."""
    lines = [f"data: {plan['split']}; what is computed from images is kept in {cache_dir()}"]
    if plan["epochs"] == 0:
        return [*lines, "plan: no training; the untrained network embeds the images and is tested"]
    warmup = f"{plan['warmup']} of warm-up and " if plan["warmup"] else ""
    lines.append(
        f"plan: {warmup}{plan['epochs']} epochs of {plan['steps_per_epoch']} steps, {plan['steps']:,} steps "
        f"in all, batches of {plan['batch']}; stored in {plan['path']}"
    )
    if plan.get("again"):
        lines.append("this run was begun before, but nothing was saved yet: it starts anew")
    return lines
