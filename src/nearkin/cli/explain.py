"""`nearkin explain`."""

from typing import Annotated

import typer

from nearkin.cli.options import Json
from nearkin.cli.screen import say, say_json


def explain_command(
    key: Annotated[str, typer.Argument(help="Such as train.lr, dim, loss, loss.alpha, multi_similarity, train.")],
    as_json: Json = False,
) -> None:
    """What a setting means: default, source, choices, bounds; of a loss or another class, its formula too."""
    from nearkin.config.catalogue import read_catalogue
    from nearkin.config.explained import Explained

    catalogue = read_catalogue()
    entries = catalogue.explain(key)
    say_json([entry.to_dict() for entry in entries]) if as_json else say(Explained(entries, catalogue))
