"""The one progress bar, and parallel work in order that feeds it. Bars stand on stderr and leave nothing behind."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

S = TypeVar("S")
T = TypeVar("T")


class Advance(Protocol):
    """How work tells a bar how far it is."""

    def __call__(self, done: int, total: int | None = None, note: str = "") -> None: ...


@contextmanager
def bar(
    title: str, total: int | None = None, *, console: Console | None = None, hide: bool = False
) -> Iterator[Advance]:
    """A bar with the time left, moved by calls of what this yields; invisible when stderr is no terminal."""
    console = console or Console(stderr=True)
    note = TextColumn("{task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
    with Progress(*columns, console=console, transient=True, disable=hide or not console.is_terminal) as progress:
        task = progress.add_task(title, total=total, note="")

        def advance(done: int, total: int | None = None, note: str = "") -> None:
            changed: dict[str, Any] = {"completed": done, "note": note}
            progress.update(task, **changed if total is None else {**changed, "total": total})

        yield advance


def track(items: Iterable[T], title: str, total: int) -> Iterator[T]:
    """The items, with a bar that counts them."""
    with bar(title, total) as advance:
        for done, item in enumerate(items, start=1):
            yield item
            advance(done)


def parallel(function: Callable[[S], T], items: Sequence[S], title: str) -> Iterator[T]:
    """function(item) for each item, in order, with a bar. Threads suffice: decoding, resizing and hashing let go of
    the interpreter. At most a few results wait, so that memory stays small."""
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
