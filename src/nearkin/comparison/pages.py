"""Texts in rows; being replaced by present.Table."""

from dataclasses import dataclass, field

from nearkin.comparison.tables import claims_table as claims_sheet
from nearkin.comparison.tables import measured_claims, standing_of
from nearkin.comparison.words import ALL_PAIRS, NOT_TESTED, family_words, first_words, kinds_words, rank_words
from nearkin.present import sentence

__all__ = [
    "ALL_PAIRS",
    "NOT_TESTED",
    "Sheet",
    "claims_sheet",
    "family_words",
    "first_words",
    "kinds_words",
    "measured_claims",
    "rank_words",
    "sentence",
    "standing_of",
]


@dataclass
class Sheet:
    """A table: a title, names of the columns, texts, and what a reader must know below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: int  # columns at the end that hold numbers; -1: none
    notes: list[str] = field(default_factory=list)
