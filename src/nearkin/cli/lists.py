"""`nearkin list` and `nearkin doctor`."""

from typing import Annotated

import typer

from nearkin.cli.options import Json
from nearkin.cli.screen import say, say_json
from nearkin.registry import ALL_REGISTRIES

KINDS = [*(registry.plural for registry in ALL_REGISTRIES), "recipes"]


def list_command(kind: Annotated[str, typer.Argument(help="|".join(KINDS))], as_json: Json = False) -> None:
    """What there is to choose from."""
    from nearkin.config.catalogue import read_catalogue
    from nearkin.config.explained import list_table

    entries = read_catalogue().listed(kind)
    say_json(entries) if as_json else say(list_table(kind, entries))


def doctor_command(
    weights: Annotated[
        bool,
        typer.Option(
            "--weights", help="List the files of ImageNet weights instead: which are there, and how to get more."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """What this machine can do, what is missing, and the known traps."""
    if weights:
        from nearkin.models.available import available_weights

        files = available_weights()
        say_json(files.to_dict()) if as_json else say(files)
    else:
        from nearkin.engine.doctor import examine

        findings = examine()
        say_json([vars(finding) for finding in findings.findings]) if as_json else say(findings)
