"""Work over many images: in parallel, in order, with a progress bar on stderr that leaves nothing behind."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

S = TypeVar("S")
T = TypeVar("T")


def track(items: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Silent when stderr is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield from progress.track(items, total=total, description=description)


def parallel(function: Callable[[S], T], items: Sequence[S], description: str) -> Iterator[T]:
    """function(item) for each item, in order. Threads suffice: decoding, resizing and hashing let go of the
    interpreter. At most a few results wait, so that memory stays small."""
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

    return track(results(), description, len(items))
