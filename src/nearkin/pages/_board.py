"""The comparison on one data set, and sections that show the same of each. Every mean is that of a row on the unit of
comparison (statistics/unit.py), the one that `nearkin compare` prints; every difference is taken on what two rows have
in common."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from nearkin.comparison.compare import Comparison
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import Method
from nearkin.comparison.rows import methods_of, row_of
from nearkin.pages._base import Part, Section, Words
from nearkin.pages._slicing import MOST, Slicing
from nearkin.statistics.intervals import Interval
from nearkin.statistics.unit import Row


@dataclass
class Board:
    """The comparison on one data set."""

    data: str  # as headings call it
    comparison: Comparison  # rows: all that tells runs apart
    ranked: Comparison  # rows: methods alone, other axes are settings of the tournament
    suffix: str  # "" or -NAME, for ids where there are several data sets
    gathered: Gathered
    by: tuple[str, ...]  # what rows are: axes or settings
    rows_by_metric: dict[tuple[str, str, str], dict[str, Method]] = field(default_factory=dict)  # what by_metric gave

    @property
    def methods(self) -> list[Method]:
        """Its rows, best first."""
        return self.comparison.methods

    @property
    def trained(self) -> list[Method]:
        """Its rows without the untrained networks."""
        return self.comparison.trained

    @property
    def metric(self) -> str:
        """What the rows are compared by."""
        return self.comparison.metric

    @property
    def grid(self) -> str:
        """The id of its leaderboard, whose menus choose the methods that all parts of the board show."""
        return f"leaderboard-grid{self.suffix}"

    @property
    def where(self) -> str:
        """The beginning of a heading, where there are several data sets."""
        return f"{self.data}: " if self.suffix else ""

    @cached_property
    def members(self) -> list[Member]:
        """The tested runs on this data set."""
        data = self.methods[0].members[0].head["data_hash"]
        return [member for member in self.gathered.tested if member.head["data_hash"] == data]

    def slicing(self, methods: dict[str, str] | None = None, most: int = MOST) -> Slicing:
        """How its charts follow these menus; `methods`: what a chart calls a row -> the method."""
        return Slicing(self.grid, methods, most)

    def placed(self, part: Part) -> Part:
        """A part about this board: where there are several data sets, its id and its heading say which it is of."""
        part.id, part.title = part.id and f"{part.id}{self.suffix}", part.title and f"{self.where}{part.title}"
        if isinstance(part, Words):
            part.text = f"{self.where}{part.text}"
        elif part.table is not None:
            name, title = f"{part.table.name}{self.suffix}", part.table.title and part.title
            part.table = replace(part.table, name=name, title=title)
        return part

    def about(self, sections: Sequence[Section]) -> Sequence[Section]:
        """Sections about this board alone: where there are several data sets, they say which they are of."""
        for section in sections:
            section.id, section.title = f"{section.id}{self.suffix}", f"{self.where}{section.title}"
            for part in section.parts:
                part.id = part.id and f"{part.id}{self.suffix}"
        return sections

    def by_metric(self, metric: str, *, reading: str = "chosen", evaluation: str = "separated") -> dict[str, Method]:
        """The same rows by another metric, epoch or evaluation, by their names: what `nearkin compare` shows of it."""
        key = (metric, reading, evaluation)
        if key not in self.rows_by_metric:
            methods = methods_of(self.gathered, self.members, self.by, metric, reading=reading, evaluation=evaluation)
            self.rows_by_metric[key] = {method.name: method for method in methods}
        return self.rows_by_metric[key]

    def interval(self, method: Method, metric: str, *, evaluation: str = "separated") -> Interval | None:
        """A row's mean of another metric, with its interval; None where it is not stored."""
        other = self.by_metric(metric, evaluation=evaluation).get(method.name)
        return None if other is None else other.interval

    def row(self, method: Method, value: Callable[[Member], float | None]) -> Row:
        """Any value of a row's runs, as a row: folds and settings are averaged by the same rule as its metrics."""

        def setting(member: Member) -> tuple[str, ...]:
            return tuple(member.label(key) for key in self.comparison.block_keys)

        return row_of(method.name, method.members, "", setting=setting, value=value)


def by_board(
    boards: Iterable[Board], id: str, title: str, lead: str, *makers: Callable[[Board], Sequence[Part]]
) -> Section | None:
    """A section that shows the same of every board; None where there is nothing to show."""
    parts = [board.placed(part) for board in boards for make in makers for part in make(board)]
    return Section(id, title, lead, parts) if parts else None
