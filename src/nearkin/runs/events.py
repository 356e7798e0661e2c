"""TensorBoard events of a run, for users who watch curves there. The log itself is `log.jsonl`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nearkin.errors import NearkinError

Watch = Callable[[dict[str, Any]], None]


def silent(entry: dict[str, Any]) -> None:
    """A watcher that says nothing: `nearkin.train(..., watch=silent)`."""


def tensorboard(folder: Path) -> Watch:
    """A watcher that writes every entry of the log as events into `folder`, which must not be a link."""
    if folder.is_symlink():
        raise NearkinError(
            f"{folder} is a link to {os.readlink(folder)}: nearkin does not write through links in a run; remove it"
        )
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise NearkinError("TensorBoard is not installed: pip install 'nearkin[tensorboard]'") from error
    writer = SummaryWriter(str(folder))
    step = 0

    def watch(entry: dict[str, Any]) -> None:
        nonlocal step
        step = entry.get("step", step)
        values = entry.get("validation", {}) if "epoch_end" in entry else entry
        for name, value in values.items():
            if isinstance(value, float):
                writer.add_scalar(f"validation/{name}" if "epoch_end" in entry else name, value, step)
        if "epoch_end" in entry:
            writer.flush()

    return watch


def both(first: Watch, second: Watch) -> Watch:
    """A watcher that calls two others."""

    def watch(entry: dict[str, Any]) -> None:
        first(entry)
        second(entry)

    return watch
