"""What the command line prints: words and tables through `say`, what programs read through `say_json` and
`say_exactly`. Nothing else in this room prints."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nearkin.progress import Screen

if TYPE_CHECKING:
    from rich.text import Text

    from nearkin.present import Shown, Table

TERMINAL = sys.stdout is not None and sys.stdout.isatty()  # None: the caller closed it
WIDTH = None if TERMINAL or "COLUMNS" in os.environ else 160  # a file has no right edge
out = Screen(width=WIDTH)
err = Screen(stderr=True)


def say(*parts: str | Text | Table | Shown, error: bool = False) -> None:
    """Print texts, tables and results. Brackets are brackets, numbers have no colours, and a long line stays one line.

    Parameters:
        parts: what to print.
        error: print on stderr: what is no result.
    """
    screen = err if error else out
    for part in parts:
        rendered = part.rich() if hasattr(part, "rich") else part
        for piece in rendered if isinstance(rendered, list) else [rendered]:
            screen.print(piece, highlight=False, soft_wrap=not hasattr(piece, "renderables"))


def say_json(value: Any) -> None:
    """Print plain values as one line of JSON."""
    say_exactly(json.dumps(value) + "\n")


def say_exactly(text: str) -> None:
    """Print a text for other programs, every character as it is."""
    print(text, end="")


def say_written(files: Sequence[object]) -> None:
    """Name the files that were written, if there are any; on stderr."""
    if files:
        say(f"written: {', '.join(map(str, files))}", error=True)
