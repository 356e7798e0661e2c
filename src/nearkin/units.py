"""How values are written for people: the one place that knows how many decimals a share has.

To print percentages with another number of decimals, change `digits` of SHARE: the terminal, the report, Markdown and
LaTeX follow. Files of plain values (CSV, Parquet, Arrow) keep every digit.
"""

import math
from typing import Any

GAP = "–"


class Unit:
    """How values of one kind are written; this one: numbers with a fixed count of decimals.

    Parameters:
        name: its name in stored tables.
        digits: decimals.
        scale: a value is shown times this.
        mark: what a heading says of it.
        numeric: are its values set flush right?
    """

    def __init__(self, name: str, digits: int = 0, scale: float = 1.0, mark: str = "", numeric: bool = True):
        self.name, self.digits, self.scale, self.mark, self.numeric = name, digits, scale, mark, numeric

    def __repr__(self) -> str:
        return f"<unit {self.name}>"

    def text(self, value: Any, digits: int | None = None, signed: bool = False) -> str:
        """A value as people read it; a dash for None and for NaN; a text is itself.

        Parameters:
            value: the value, as it is stored.
            digits: decimals, where the unit's would be wrong.
            signed: does a plus stand before positive values?
        """
        if value is None or value != value:
            return GAP
        if isinstance(value, str):  # a word among numbers, as "diverged"
            return value
        return self._write(value, self.digits if digits is None else digits, "+" if signed else "")

    def _write(self, value: Any, digits: int, sign: str) -> str:
        return f"{self.scale * value:{sign},.{digits}f}"


class Seconds(Unit):
    """A time to wait, in the two largest units: 40 s, 3 min, 2 h 5 min."""

    def _write(self, value: Any, digits: int, sign: str) -> str:
        minutes = round(value / 60)
        if value < 90:
            return f"{value:.{digits}f} s"
        return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Age(Unit):
    """How long ago, in seconds: the largest unit that fits."""

    def _write(self, value: Any, digits: int, sign: str) -> str:
        if value < -60:  # clocks of two machines differ by less
            return "in the future"
        for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
            if value >= size:
                return f"{value / size:.0f} {unit}"
        return f"{max(0, value):.0f} s"


class Bytes(Unit):
    """A size in decimal units: a MB is 1,000,000 bytes."""

    def _write(self, value: Any, digits: int, sign: str) -> str:
        value = int(value)
        if value == 1:
            return "1 byte"
        if value < 1000:
            return f"{value} bytes"
        for unit in ("kB", "MB", "GB", "TB", "PB"):
            value /= 1000
            if value < 999.95 or unit == "PB":
                break
        return f"{value:,.1f} {unit}"


class Probability(Unit):
    """A p-value: below the last decimal it says so."""

    def _write(self, value: Any, digits: int, sign: str) -> str:
        least = 10.0**-digits
        return f"< {least:.{digits}f}" if value < least else f"{value:.{digits}f}"


class Words(Unit):
    """Texts, and values of mixed kinds by what they are: yes or no, whole numbers with commas, fractions with so many
    significant digits."""

    def _write(self, value: Any, digits: int, sign: str) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return f"{value:{sign},}"
        if isinstance(value, float):
            if math.isfinite(value) and abs(value) >= 1000:
                return f"{value:{sign},.0f}"
            return f"{value:{sign}.{digits}g}"
        return str(value)


SHARE = Unit("share", digits=2, scale=100, mark="%")
POINTS = Unit("points", digits=2, scale=100)
NUMBER = Unit("number", digits=3)
COUNT = Unit("count")
SECONDS = Seconds("seconds")
AGE = Age("age")
BYTES = Bytes("bytes", digits=1)
P = Probability("p", digits=3)
WORDS = Words("words", digits=4, numeric=False)
UNITS = {unit.name: unit for unit in (SHARE, POINTS, NUMBER, COUNT, SECONDS, AGE, BYTES, P, WORDS)}


def counted(number: int, noun: str, nouns: str = "") -> str:
    """1 seed, 2 seeds, 1,000 classes; `nouns` is the plural where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def as_number(value: Any) -> bool:
    """Is it a number (a truth value is none)?"""
    return isinstance(value, int | float) and not isinstance(value, bool)
