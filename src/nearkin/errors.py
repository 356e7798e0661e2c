"""The one exception that a user is meant to read, and the words it is made of."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

# control characters except tab and newline, and marks that change the direction of writing: a terminal obeys them
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class NearkinError(ValueError):
    """Bad input. The message says what was received, why it is wrong and what would be right, in one line."""


class PassingError(NearkinError):
    """An error that is not the fault of the request: a full disk, a folder without write permission. The same call may
    succeed later."""


def choices(name: str, known: Iterable[str]) -> str:
    """'did you mean margin? choices: contrastive, margin, ...': the end of every unknown-name message."""
    known = sorted(set(known))
    close = get_close_matches(name, known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{hint}choices: {', '.join(known) or 'none'}"


def and_more(items: Sequence[Any], shown: int = 5, between: str = ", ") -> str:
    """'a, b, c, d, e and 3 more': the first few of a list, for a message."""
    rest = len(items) - shown
    return between.join(str(item) for item in items[:shown]) + (f" and {rest:,} more" if rest > 0 else "")


def printable(text: str) -> str:
    """A text for a terminal, with a mark in place of every character that the terminal would obey: names of files and
    classes may come from anyone."""
    return OBEYED.sub("\ufffd", text)
