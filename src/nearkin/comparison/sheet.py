"""`Sheet`: a table as texts."""

from dataclasses import dataclass, field


@dataclass
class Sheet:
    """A table: a title, names of the columns, texts, and what a reader must know below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: int  # columns at the end that hold numbers; -1: none
    notes: list[str] = field(default_factory=list)
