"""All commands in one table: where they are, their lines in `nearkin --help`, and the panels that they stand in.

A module is imported when its command runs: `nearkin --help` and completion need none of them.
"""

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group


class Command(NamedTuple):
    """One command."""

    place: str  # MODULE:NAME in nearkin.cli: a function, or a typer.Typer with commands of its own
    about: str  # its line of help: the first paragraph of its docstring
    panel: str  # the heading that it stands under

    def load(self) -> Any:
        """The function, or the typer.Typer."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"nearkin.cli.{module}"), name)


IMAGES, RUNS, LOOK = "Your images", "Runs and comparisons", "Look around"  # panels of `nearkin --help`
COMMANDS = {  # word -> where it is, its line of help, its panel
    "fit": Command(
        "fit:fit_command",
        "The best model for your images, and what it is worth on classes it has never seen. Interrupted, it goes on.",
        IMAGES,
    ),
    "train": Command(
        "train:train_command", "Train one run; the same command again resumes it, or shows its stored result.", RUNS
    ),
    "test": Command(
        "test:test_command",
        "Test final runs, or test them again with other metrics: from stored embeddings, nothing is trained.",
        RUNS,
    ),
    "embed": Command(
        "train:embed_command", "Embed new images with a trained run; `nearkin evaluate emb.npz` measures them.", RUNS
    ),
    "evaluate": Command(
        "evaluate:evaluate_command",
        "Retrieval, clustering and space metrics of anyone's embeddings, exact, in bounded memory.",
        RUNS,
    ),
    "study": Command(
        "study:study_command",
        "Run what is not stored yet of a grid of runs; print mean and standard deviation over seeds.",
        RUNS,
    ),
    "compare": Command(
        "compare:compare_command",
        "Means with intervals, differences on what rows have in common, and a verdict for each of them.",
        RUNS,
    ),
    "analyse": Command(
        "analyse:analyse_command", "Look into what runs have learned: tables, and numbers and figures as files.", RUNS
    ),
    "report": Command(
        "report:report_command",
        "Turn a study, a fit, several runs or one run into one HTML page that opens offline; nothing is trained.",
        RUNS,
    ),
    "published": Command(
        "published:published_command",
        "Published tables and claims: what they print, under which protocol, and what is wrong in them.",
        RUNS,
    ),
    "demo": Command(
        "demo:demo_command",
        "Train and compare losses on the embedded data, then write the report. Nothing is downloaded.",
        LOOK,
    ),
    "list": Command("lists:list_command", "What there is to choose from.", LOOK),
    "explain": Command(
        "explain:explain_command",
        "What a setting means: default, source, choices, bounds; of a loss or another class, its formula too.",
        LOOK,
    ),
    "doctor": Command("lists:doctor_command", "What this machine can do, what is missing, and the known traps.", LOOK),
    "runs": Command("runs:runs_app", "Look at stored runs.", LOOK),
    "data": Command("data:data_app", "Look at data sets.", LOOK),
    "cache": Command("cache:cache_app", "Look at images and features that are kept, and clear them.", LOOK),
}


OPTIONS = {  # a word that one may look for -> the command that does it
    "choose": "fit FOLDER --losses LIST",
    "tune": "study FILE --tune-only",
    "tournament": "compare NAME --ranks",
    "claims": "published --claims",
    "weights": "doctor --weights",
    "reproduce": "runs reproduce RUN",
}


class LazyGroup(TyperGroup):
    """Lists commands by their lines, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the first word names; None while a word is completed that names none yet."""
        if args[0] in OPTIONS and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean 'nearkin {OPTIONS[args[0]]}'?")
        name, line, rest = super().resolve_command(ctx, args)
        return name, None if line is None else parser_of(line.name or ""), rest


def add_lines(app: typer.Typer) -> None:
    """Have an app list all commands without importing any."""
    for name, command in COMMANDS.items():
        app.command(name, help=command.about, rich_help_panel=command.panel)(_line)


def _line() -> None:
    """Stands for a command in the list; it is never called."""


def parser_of(name: str) -> Any:
    """The command of that name, imported, as click has it."""
    part, holder = COMMANDS[name].load(), typer.Typer(add_completion=False)
    holder.add_typer(part, name=name) if isinstance(part, typer.Typer) else holder.command(name)(part)
    return get_group(holder).commands[name]
