"""Who carries out runs, and how their progress is shown."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

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


class Progress(Protocol):
    """Work on its way: a table for a terminal, lines for a log."""

    def table(self) -> Table:
        """How far everything is."""
        ...

    def ended(self) -> list[str]:
        """What has ended since the last call, one line each."""
        ...


@contextmanager
def following(print_table: Callable[[Table], None] | None = None) -> Iterator[Callable[[Progress | Table], None]]:
    """Shows how far work is on stderr: a table on a terminal, elsewhere a line for whatever ends. A table that is a
    result stays.

    Parameters:
        print_table: prints such a table; None: on stderr too.
    """
    from rich.live import Live

    screen = Screen(stderr=True)
    live = Live(console=screen, refresh_per_second=4, transient=True)

    def show(news: Progress | Table) -> None:
        if isinstance(news, Table):
            live.stop()
            print_table(news) if print_table else screen.print(news.rich(), highlight=False)
        elif screen.is_terminal:
            live.start()
            live.update(news.table().rich())
        else:
            for line in news.ended():
                screen.print(line, highlight=False, soft_wrap=True)

    try:
        yield show
    finally:
        live.stop()
