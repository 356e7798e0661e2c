"""`nearkin list` and `nearkin doctor`."""

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from nearkin.cli import tables
from nearkin.cli.options import Json
from nearkin.config.catalogue import read_catalogue
from nearkin.registry import ALL_REGISTRIES

KINDS = [*(each.plural for each in ALL_REGISTRIES), "recipes"]


def list_command(kind: Annotated[str, typer.Argument(help="|".join(KINDS))], as_json: Json = False) -> None:
    """What there is to choose from."""
    found = read_catalogue().listed(kind)
    if as_json:
        print(json.dumps(found))
        return
    last = "paper" if any("paper" in e for e in found) else "about"
    columns = [c for c in ("name", "takes", "gives", "defaults", last) if any(c in e for e in found)]

    def cell(value: Any) -> str:
        return ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else str(value)

    rows = [[cell(entry.get(c, "")) for c in columns] for entry in found]
    tables.out.print(tables.table(None, dict.fromkeys(columns, "left"), rows))


def doctor_command(as_json: Json = False) -> None:
    """What this machine can do, what is missing, and the known traps."""
    from nearkin.cli import doctor  # here: it brings torch, and `nearkin list` should not

    findings = doctor.examine()
    if as_json:
        print(json.dumps([vars(f) for f in findings]))
        return
    colour = {"ok": "green", "missing": "yellow", "trap": "red"}
    rows: list[list[str | Text]] = [[f.what, Text(f.state, colour[f.state]), f.detail] for f in findings]
    tables.out.print(tables.table(None, {"what": "left", "state": "left", "detail": "left"}, rows))
