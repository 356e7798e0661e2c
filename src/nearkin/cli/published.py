"""`nearkin published`: the literature's tables, claims and tournaments."""

from typing import Annotated

import typer

from nearkin.cli.options import Csv, Json, Latex, Markdown, write_tables
from nearkin.cli.screen import say, say_exactly, say_written

Name = Annotated[
    str | None, typer.Argument(metavar="TABLE", help="A table, such as thesis_t6a; without one, all are listed.")
]


def published_command(
    name: Name = None,
    claims: Annotated[bool, typer.Option("--claims", help="Show what the sources say in words instead.")] = False,
    ranks: Annotated[bool, typer.Option("--ranks", help="Show the tournaments of Psomas 2020 instead.")] = False,
    inventory: Annotated[
        bool, typer.Option("--inventory", help="Show every item of the sources instead, and where nearkin has it.")
    ] = False,
    source: Annotated[str, typer.Option("--source", help="Only the claims of one source, such as psomas2020.")] = "",
    csv: Csv = None,
    markdown: Markdown = None,
    latex: Latex = None,
    as_json: Json = False,
) -> None:
    """Published tables and claims: what they print, under which protocol, and what is wrong in them."""
    from nearkin.literature.shown import published

    result = published(name, claims=claims, ranks=ranks, inventory=inventory, source=source)
    say_exactly(result.to_json() + "\n") if as_json else say(result)
    say_written(write_tables({table.name: table for table in result.whole}, csv=csv, markdown=markdown, latex=latex))
