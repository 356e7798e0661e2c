"""Who carries out runs, and how their progress is shown."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from nearkin.errors import and_more
from nearkin.present import Table
from nearkin.progress import Screen
from nearkin.studies._local import LocalProcesses
from nearkin.studies.scheduler import Executor


def executor_of(workers: int | None = None, ray: str | None = None) -> Executor:
    """Worker processes of this machine, or Ray.

    Parameters:
        workers: runs at a time, one thread each; None: 1, or all that Ray has.
        ray: the address of a Ray cluster, HOST:PORT, or auto for the local one; None: without Ray.
    """
    if ray is None:
        return LocalProcesses(workers or 1)
    from nearkin.studies._ray import RayExecutor

    screen = Screen(stderr=True)
    return RayExecutor(workers, ray, say=lambda line: screen.print(line, highlight=False, soft_wrap=True))


EVERY = 60.0  # seconds after which a log has a line, whatever has ended


class Progress(Protocol):
    """Work on its way: a table for a terminal, lines for a log."""

    def table(self) -> Table:
        """How far everything is."""
        ...

    def ended(self) -> list[str]:
        """What has ended since the last call, one line each."""
        ...


def under_way(table: Table) -> str:
    """How far work is, in one line: the title of its table, and what is in it."""
    names = [str(row[0]) for row in table.rows]
    return table.title + (f": {and_more(names, 4)}" if names else "")


@contextmanager
def following(print_table: Callable[[Table], None] | None = None) -> Iterator[Callable[[Progress | Table], None]]:
    """Shows how far work is on stderr: a table on a terminal, elsewhere a line for whatever ends, and one a minute. A
    table that is a result stays.

    Parameters:
        print_table: prints such a table; None: on stderr too.
    """
    from rich.live import Live

    screen = Screen(stderr=True)
    live = Live(console=screen, refresh_per_second=4, transient=True)

    printed = time.monotonic()

    def show(news: Progress | Table) -> None:
        nonlocal printed
        if isinstance(news, Table):
            live.stop()
            print_table(news) if print_table else screen.print(news.rich(), highlight=False)
        elif screen.is_terminal:
            live.start()
            live.update(news.table().rich())
        else:
            late = time.monotonic() - printed > EVERY
            for line in news.ended() or ([under_way(news.table())] if late else []):
                screen.print(line, highlight=False, soft_wrap=True)
                printed = time.monotonic()

    try:
        yield show
    finally:
        live.stop()
