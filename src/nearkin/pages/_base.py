"""What a page is made of: sections of parts. Every part that shows numbers shows those of a table.

The page puts around the `html()` of every part

    <div class="part" id="ID" data-part="KIND"> <h3>TITLE</h3> ... <button>CSV</button> </div>

where KIND is the class's `kind` (left out when empty: nothing to run), the heading is left out when the title is empty,
and the button when there is no table. The page's one JSON holds, under the id of every part, `data()` and, under
"table", the part's table as {name, header, rows}. A script of assets/ registers itself with
`nearkin.part(KIND, (element, data) => ...)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from markupsafe import Markup, escape

from nearkin.errors import NearkinError
from nearkin.pages._slicing import Slicing
from nearkin.present import Chart, Table
from nearkin.present.html import sentences
from nearkin.units import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass
class Part:
    """One thing in a section; those that show something derive from it.

    Parameters:
        id: unique in the page, of a-z, 0-9 and hyphens.
        title: its heading; empty for none.
        table: its numbers; None for words and pictures without.
    """

    kind: ClassVar[str] = ""  # the script that brings it to life
    id: str
    title: str
    table: Table | None = None

    def html(self) -> Markup:
        """What stands in the page, escaped; its words can be read without JavaScript."""
        return Markup("")

    def data(self) -> dict[str, Any]:
        """What its script reads beside the table."""
        return {}

    def drawn(self) -> "Drawing | None":
        """The figure that a file shows of it; None where it is no picture."""
        return None


class Words(Part):
    """Paragraphs, split at empty lines.

    Parameters:
        text: plain text; all of it is escaped.
        tone: "plain", or "warning" for what must not be overlooked: red.
    """

    def __init__(self, text: str, tone: str = "plain"):
        super().__init__("", "")
        self.text, self.tone = text, tone

    def html(self) -> Markup:
        """One <p> per paragraph."""
        paragraphs = [line.strip() for line in self.text.split("\n\n") if line.strip()]
        return Markup("\n").join(Markup('<p class="words {}">{}</p>').format(self.tone, text) for text in paragraphs)


@dataclass
class Lines(Part):
    """Text that is to be copied: a command, a file. Folded away where it is long.

    Parameters:
        text: the text, shown as it is.
        folded: is it behind its title?
    """

    kind: ClassVar[str] = "lines"
    text: str = ""
    folded: bool = False

    def html(self) -> Markup:
        """<pre>, in <details> when folded."""
        pre = Markup('<div class="box"><pre tabindex="0"><code>{}</code></pre></div>').format(self.text)
        return Markup("<details><summary>show</summary>{}</details>").format(pre) if self.folded else pre


class Grid(Part):
    """A table, sorted by a click on a heading, filtered by what some columns hold.

    Parameters:
        table: what it shows; its title is the heading.
        id: by default the name of the table.
        filters: names of columns with a menu of their values above the grid.
        search: is there a field that keeps the rows which contain a text?
        folded: is it behind its title? Its notes are not.
        slice: id of the grid whose menus choose the methods that are shown here, too; a grid that names itself is the
            one with the menus.
    """

    kind: ClassVar[str] = "grid"

    def __init__(
        self,
        table: Table,
        id: str = "",
        *,
        filters: Sequence[str] = (),
        search: bool = False,
        folded: bool = False,
        slice: str = "",
    ):
        super().__init__(id or table.name, table.title, table)
        self.filters, self.search, self.folded, self.slice = list(filters), search, folded, slice

    def html(self) -> Markup:
        """The whole table."""
        assert self.table is not None
        grid = Markup('<div class="filters"></div><div class="box">{}</div>').format(self.table.html(notes=False))
        if self.folded:
            rows = counted(len(self.table), "row")
            grid = Markup("<details><summary>{}</summary>{}</details>").format(rows, grid)
        return grid + sentences(self.table.notes)

    def data(self) -> dict[str, Any]:
        """Which columns have a menu, whether there is a search field, whose menus choose the rows."""
        return {"filters": self.filters, "search": self.search, "slice": self.slice}


class Figure(Part):
    """A chart, drawn by the page's script.

    Parameters:
        chart: what is drawn.
        slicing: which rows are drawn: at most so many, and those that the menus of a grid choose.
        id: by default the name of the chart.
    """

    kind: ClassVar[str] = "chart"

    def __init__(self, chart: Chart, slicing: Slicing | None = None, id: str = ""):
        tables = [chart.table, *(panel.table for panel in getattr(chart, "charts", ()))]  # panels have one each
        super().__init__(id or chart.name, chart.title, next(table for table in tables if table.columns))
        self.chart, self.slicing = chart, slicing

    def html(self) -> Markup:
        """The place where it is drawn, and its numbers for those who cannot or will not see it."""
        assert self.table is not None
        chart, note = self.chart, self.slicing.note(self.chart) if self.slicing else ""
        return Markup(
            '<figure><div class="plot" role="img" aria-label="{}"></div><figcaption>{}</figcaption></figure>'
            '<p class="note rows">{}</p>{}'
            '<details class="numbers"><summary>the numbers</summary><div class="box">{}</div></details>'
        ).format(
            chart.alt or chart.title,
            chart.alt,
            note,
            sentences(chart.notes),
            self.table.html(most=300, caption=False, notes=False),
        )

    def data(self) -> dict[str, Any]:
        """What the page's script draws: plotly's traces and layout."""
        return {"figure": self.chart.plotly(), **(self.slicing.data(self.chart) if self.slicing else {})}

    def drawn(self) -> "Drawing":
        """The chart with as many rows as the page at first."""
        return (self.slicing.first(self.chart) if self.slicing else self.chart).figure()


@dataclass
class Section:
    """A heading, one sentence that says what to see here, and parts.

    Parameters:
        id: unique in the page, of a-z, 0-9 and hyphens.
        title: its heading.
        lead: one sentence.
        parts: what it shows, in order.
    """

    id: str
    title: str
    lead: str
    parts: list[Part]


def attempt(id: str, title: str, lead: str, without: str, make: Callable[[], list[Part]]) -> Section:
    """A section that says why, after the words `without`, where its parts cannot be made."""
    try:
        return Section(id, title, lead, make())
    except NearkinError as error:
        return Section(id, title, lead, [Words(f"{without}: {error}.", "warning")])


def slug(text: str) -> str:
    """Words as an id: lower case, digits and single hyphens."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in str(escape(text)).lower()).split())
