"""The one progress bar, and parallel work in order that feeds it.

On a terminal it is a bar on stderr that leaves nothing behind; elsewhere (a log, a notebook, CI) a line every few
seconds.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment

from nearkin.errors import printable
from nearkin.units import SECONDS

S = TypeVar("S")
T = TypeVar("T")

EVERY = 5.0  # seconds between two lines where there is no terminal


class Screen(Console):
    """A console for texts from anyone: brackets are brackets and colons are colons, never markup, and only rich itself
    tells the terminal what to do.

    Parameters:
        settings: those of rich's Console.
    """

    def __init__(self, **settings: Any):
        super().__init__(markup=False, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What rich renders, without control characters in the texts."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))


class Advance(Protocol):
    """How work tells a bar how far it is."""

    def __call__(self, done: int, total: int | None = None, note: str = "") -> None: ...


@contextmanager
def bar(
    title: str, total: int | None = None, *, console: Console | None = None, hide: bool = False
) -> Iterator[Advance]:
    """A bar with the time left; calling what this yields moves it. Without a terminal, work that takes longer than
    EVERY seconds prints one line per EVERY seconds; shorter work prints nothing."""
    console = console or Screen(stderr=True)
    if not console.is_terminal:
        yield (lambda done, total=None, note="": None) if hide or console.quiet else Lines(title, total, console)
        return
    note = TextColumn("{task.fields[note]}", markup=False)
    title_column = TextColumn("{task.description}", markup=False)
    columns = (title_column, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=console, transient=True, disable=hide) as progress:
        task = progress.add_task(title, total=total, note="")

        def advance(done: int, total: int | None = None, note: str = "") -> None:
            changed: dict[str, Any] = {"completed": done, "note": note}
            progress.update(task, **changed if total is None else {**changed, "total": total})

        yield advance


class Lines:
    """A bar for a log: one line every EVERY seconds.

    Parameters:
        title: what is being done.
        total: how much there is to do, if that is known.
        console: where the lines go.
    """

    def __init__(self, title: str, total: int | None, console: Console):
        self.title, self.total, self.console = title, total, console
        self.began = self.printed = time.monotonic()

    def __call__(self, done: int, total: int | None = None, note: str = "") -> None:
        """Print how far the work is, if a line is due."""
        self.total = self.total if total is None else total
        now = time.monotonic()
        if now - self.printed < EVERY:
            return
        self.printed = now
        words = [f"{self.title}: {done:,}" + (f" of {self.total:,}" if self.total else "")]
        if self.total and done:
            words.append(f"{SECONDS.text((now - self.began) / done * max(0, self.total - done))} left")
        self.console.print(", ".join([*words, note] if note else words), highlight=False, soft_wrap=True)


def note(line: str) -> None:
    """Print one line on stderr: something was decided without asking."""
    Screen(stderr=True).print(line, highlight=False, soft_wrap=True)


@cache
def note_once(line: str) -> None:
    """The same, once per process."""
    note(line)


def track(items: Iterable[T], title: str, total: int) -> Iterator[T]:
    """The items, with a bar that counts them."""
    with bar(title, total) as advance:
        for done, item in enumerate(items, start=1):
            yield item
            advance(done)


def parallel(function: Callable[[S], T], items: Sequence[S], title: str) -> Iterator[T]:
    """function(item) for each item, in order, with a bar. Threads suffice: decoding, resizing and hashing release the
    interpreter's lock. Only a few results wait at a time, so that memory stays small."""
    threads = os.cpu_count() or 1

    def results() -> Iterator[T]:
        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > 8 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    return track(results(), title, len(items))
