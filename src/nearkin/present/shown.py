"""What a call returns: tables that print, show themselves in a notebook and go on to other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearkin.present.table import Table

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from rich.console import RenderableType


class Shown:
    """A result with tables. The first is the main one: `to_arrow` and `to_pandas` give it."""

    @property
    def tables(self) -> Sequence[Table]:
        """Its tables, the main one first."""
        raise NotImplementedError

    @property
    def words(self) -> Sequence[str]:
        """Sentences before the tables."""
        return ()

    @property
    def below(self) -> Sequence[str]:
        """Sentences after the tables."""
        return ()

    @property
    def screen(self) -> Sequence[Table]:
        """The tables that a terminal and a notebook show: those that are no details."""
        return [table for table in self.tables if not table.detail]

    def rich(self) -> list[RenderableType]:
        """What a terminal prints: words, tables, and what stands below them."""
        return [*self.words, *(table.rich() for table in self.screen), *self.below]

    def to_arrow(self) -> pyarrow.Table:
        """The main table's plain values as an Arrow table."""
        return self.tables[0].to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """The main table's plain values as a data frame of pandas, which must be installed."""
        return self.tables[0].to_pandas()

    def __str__(self) -> str:
        from nearkin.present.terminal import plain

        return plain(self.rich())

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        words, below = ([Markup("<p>{}</p>").format(line) for line in part] for part in (self.words, self.below))
        tables = [table.html() for table in self.screen]
        return str(Markup("\n").join([*words, *tables, *below]))
