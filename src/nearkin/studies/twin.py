"""The twin of a study: the published tables and figures that it repeats, and what is not as they have it on purpose.

`tests/literature/test_ready_twins.py` compares every study under studies/ with its twin.
"""

import re
from collections.abc import Iterable
from typing import Any

from nearkin.errors import NearkinError, choices
from nearkin.literature.table import PublishedTable
from nearkin.literature.tables import sources, tables

FIGURE = re.compile(r"(\w+) figure (\d+)")


def parse_twin(value: Any, where: str) -> tuple[str, ...]:
    """The names in `twin:` of a study's file: of published tables, or of figures, as `roth2020 figure 8`."""
    names = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise NearkinError(f"twin={value!r} in {where}: must be a list of published tables, such as [roth_t4, roth_t5]")
    for name in names:
        figure = FIGURE.fullmatch(str(name))
        if figure and figure[1] not in sources():
            raise NearkinError(f"twin={name!r} in {where}: {choices(figure[1], sources())}")
        if not figure and not parts_of(str(name)):
            raise NearkinError(
                f"twin={name!r} in {where}: no published table, and no figure such as 'roth2020 figure 8': "
                f"{choices(str(name), [one.id for one in tables()])}"
            )
    return tuple(names)


def parts_of(name: str) -> list[PublishedTable]:
    """The published tables of this name: thesis_t6 are its parts, thesis_t6a to thesis_t6d."""
    return [one for one in tables() if re.fullmatch(f"{re.escape(name)}[a-z]?", one.id)]


def parse_differs(value: Any, where: str) -> dict[str, str]:
    """What `differs:` in a study's file says: what is not as in its twin -> why."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(why, str) and why for why in value.values()):
        raise NearkinError(f"differs={value!r} in {where}: must be a mapping from what differs to why, in words")
    return {str(what): why for what, why in value.items()}


def twin_words(names: Iterable[str]) -> str:
    """A twin in words: Lim et al. 2022, tables 4, 5."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for name in names:
        figure = FIGURE.fullmatch(name)
        source, kind, number = (figure[1], "figure", figure[2]) if figure else (parts_of(name)[0].source, "table", "")
        author = sources()[source].partition(",")[0]
        numbers.setdefault((author, kind), []).append(number or name.rpartition("_t")[2])
    words = {
        key: f"{key[1]}{'s' * (len(listed) > 1)} {', '.join(dict.fromkeys(listed))}" for key, listed in numbers.items()
    }
    authors = dict.fromkeys(author for author, _ in words)
    return "; ".join(f"{one}, {' and '.join(said for (a, _), said in words.items() if a == one)}" for one in authors)
