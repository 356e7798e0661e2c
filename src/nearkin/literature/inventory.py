"""Every item of the sources, and every table and figure, with its place in nearkin: `data/inventory.json`."""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from nearkin.errors import NearkinError

MARKS = {"●": "works", "◐": "partly", "○": "missing", "–": "no demand of the sources"}


class Item(NamedTuple):
    """One item of a source.

    Parameters:
        id: its part, a letter, and its number there.
        item: what it is.
        source: where it stands: a letter for the source, then its own numbers.
        mark: one of MARKS.
        where: its places in nearkin: files, words of a run, commands.
        missing: what is missing, and why; empty where nothing is.
    """

    id: str
    item: str
    source: str
    mark: str
    where: tuple[str, ...]
    missing: str

    @property
    def part(self) -> str:
        """The letter of its part."""
        return self.id[0]


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    return json.loads((files("nearkin.literature") / "data" / "inventory.json").read_text(encoding="utf-8"))


def parts() -> dict[str, str]:
    """Letter of a part -> its heading, in order."""
    return dict(_content()["parts"])


def items() -> list[Item]:
    """All items, in the order of their ids."""
    made = [Item(**{**raw, "where": tuple(raw["where"])}) for raw in _content()["items"]]
    for item in made:
        if item.mark not in MARKS:
            raise NearkinError(f"item {item.id} has the mark {item.mark!r}; choices: {' '.join(MARKS)}")
    return made
