"""The command line: parse, call, print. Each group of commands has a file of its own, `commands.py` lists them."""

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

import nearkin
from nearkin.cli.commands import LazyGroup, add_lines
from nearkin.cli.flags import in_flags
from nearkin.cli.options import with_address
from nearkin.engine import rank
from nearkin.engine.allocator import tune_allocator
from nearkin.errors import NearkinError, PassingError
from nearkin.studies.cluster import ClusterLost

UsageError: Any = typer.BadParameter.__bases__[0]  # typer brings its own copy of click, or takes the installed one
NO_MEMORY = re.compile(r"out of memory|(can't|cannot) allocate|not enough memory|can't start new thread", re.I)


def print_version(asked: bool) -> None:
    """`nearkin --version`."""
    if asked:
        from nearkin.cli.screen import say

        say(f"nearkin {nearkin.__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train and compare image-retrieval embeddings fairly.",
)


@app.callback()
def everything(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Train and compare image-retrieval embeddings fairly."""


add_lines(app)


def main() -> None:
    """Run a command. Bad input is one line on stderr and exit code 2; what the system refuses (a full disk, too little
    memory, a folder that may not be written) is one line and exit code 1. Neither is a traceback."""
    tune_allocator()
    open_output()
    try:
        code = app(with_address(sys.argv[1:]), standalone_mode=False)
        sys.stdout.flush()  # here it can still be said that it failed
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # no words at all: the message is the help
            complain(error.format_message())
            sys.exit(2)
        fail(f"{' '.join(error.format_message().split())} (nearkin --help, nearkin COMMAND --help)")
    except ClusterLost as error:
        complain(f"nearkin: {in_flags(str(error))}")
        os._exit(2)  # an orderly end would wait for Ray's threads
    except NearkinError as error:
        fail(in_flags(str(error)), 1 if isinstance(error, PassingError) else 2)
    except (KeyboardInterrupt, typer.Abort):
        complain("nearkin: interrupted")
        sys.exit(130)
    except BrokenPipeError:  # as in `nearkin runs list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if (reason := refused(error)) is None:
            raise
        fail(reason, 1)
    sys.exit(code or 0)


def open_output() -> None:
    """Have somewhere to write, and characters that the terminal does not know written as question marks."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: nobody wants to see it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def refused(error: Exception) -> str | None:
    """In one line, what the system refused: a file, or memory, which torch asks for in its own words; None: it is
    another error."""
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full: {error.filename or 'cannot write'}"
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and NO_MEMORY.search(str(error))):
        detail = " ".join(str(error).split())[:200]
        return f"there is too little memory{f': {detail}' if detail else ''}"
    return None


def complain(text: str) -> None:
    """Print on stderr."""
    from nearkin.cli.screen import say  # here: completion and --help need no screen

    say(text, error=True)


def fail(message: str, code: int = 2) -> None:
    """One line on stderr, and an exit code."""
    complain(f"nearkin: {rank.prefix()}{message}")
    with suppress(OSError):  # what was printed before may not be writable either
        sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
