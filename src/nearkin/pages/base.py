"""What a page is made of: sections of parts. Every part that shows numbers shows those of a table.

The page puts around the `html()` of every part

    <div class="part" id="ID" data-part="KIND"> <h3>TITLE</h3> ... <button>CSV</button> </div>

where KIND is the class's `kind` (left out when empty: nothing to run), the heading is left out when the title is empty,
and the button when there is no table. The page's one JSON holds, under the id of every part, `data()` and, under
"table", the part's table as {name, header, rows}. A script of assets/ registers itself with
`nearkin.part(KIND, (element, data) => ...)`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from markupsafe import Markup, escape


@dataclass
class Table:
    """A small table: what a figure is drawn from, and what its download holds.

    Parameters:
        name: file name of the download, without ending.
        header: names of the columns.
        rows: one list per row; numbers stay numbers, None is a gap.
    """

    name: str
    header: list[str]
    rows: list[list[Any]]

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """Every row as column -> value."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]


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


class Words(Part):
    """Paragraphs, split at empty lines.

    Parameters:
        text: plain text; all of it is escaped.
        tone: "plain", or "warning" for what must not be overlooked: red.
        id: unique in the page; by default none is written.
        title: its heading; empty for none.
    """

    def __init__(self, text: str, tone: str = "plain", id: str = "", title: str = ""):
        super().__init__(id, title)
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


@dataclass(frozen=True)
class Column:
    """A column of a grid: what it sorts by, and what it shows.

    Parameters:
        name: the column of the table that it sorts by.
        heading: what stands above it; by default the name.
        text: what a cell shows, given the row as column -> value; by default the value.
        about: what the heading tells on hover.
    """

    name: str
    heading: str = ""
    text: Callable[[Mapping[str, Any]], str] | None = None
    about: str = ""


def rounded(name: str, digits: int) -> Column:
    """A column of numbers with so many decimals; whole ones without."""

    def text(row: Mapping[str, Any]) -> str:
        value = row[name]
        return "–" if value is None else f"{value:g}" if float(value).is_integer() else f"{value:.{digits}f}"

    return Column(name, text=text)


@dataclass
class Grid(Part):
    """An HTML table, sorted by a click on a heading, filtered by what some columns hold.

    Parameters:
        columns: what is shown of the table; by default every column.
        filters: names of columns with a menu of their values above the grid.
        search: is there a field that keeps the rows which contain a text?
        warn: numbers of rows that are shown in red.
        notes: sentences below it.
        folded: is it behind its title?
    """

    kind: ClassVar[str] = "grid"
    columns: Sequence[Column] = ()
    filters: Sequence[str] = ()
    search: bool = False
    warn: Sequence[int] = ()
    notes: Sequence[str] = ()
    folded: bool = False

    def html(self) -> Markup:
        """The whole table."""
        assert self.table is not None
        columns = self.columns or [Column(name) for name in self.table.header]
        rows = self.table.records()
        numeric = {c.name: all(v is None or _is_number(v) for v in self.table.column(c.name)) for c in columns}
        head, body = Markup(""), Markup("")
        for column in columns:
            head += Markup('<th scope="col" data-column="{}"{}{}>{}</th>').format(
                self.table.header.index(column.name),
                Markup(' class="number"') if numeric[column.name] else "",
                Markup(' title="{}"').format(column.about) if column.about else "",
                column.heading or column.name,
            )
        lines = []
        for i, row in enumerate(rows):
            cells = [
                Markup('<td class="number">{}</td>' if numeric[c.name] else "<td>{}</td>").format(
                    c.text(row) if c.text else shown(row[c.name])
                )
                for c in columns
            ]
            warn = Markup(' class="warning"') if i in set(self.warn) else ""
            lines.append(Markup('<tr data-row="{}"{}>{}</tr>').format(i, warn, Markup("").join(cells)))
        body = Markup("\n").join(lines)
        caption = Markup("<caption>{}</caption>").format(self.title) if self.title else ""
        inner = Markup(
            '<div class="filters"></div><div class="box"><table>{}<thead><tr>{}</tr></thead>'
            "<tbody>\n{}\n</tbody></table></div>{}"
        ).format(caption, head, body, _notes(self.notes))
        if not self.folded:
            return inner
        return Markup("<details><summary>{} rows</summary>{}</details>").format(len(rows), inner)

    def data(self) -> dict[str, Any]:
        """Which columns have a menu, and whether there is a search field."""
        return {"filters": list(self.filters), "search": self.search}


@dataclass
class Chart(Part):
    """A figure drawn from its table, by plotly in the page and by matplotlib in files. Columns are named; nothing is
    computed when it is drawn.

    Parameters:
        form: lines, bars, points, dots (names down the side, a point and its interval each), heatmap or ranks (a
            critical-difference diagram).
        x, y: the columns along the axes; a heatmap's are words, its numbers are in `value`.
        by: the column that tells one line, or one colour of points and bars, from another.
        low, high: the columns of intervals around y.
        value: a heatmap's numbers.
        text: the column that names a point on hover.
        percent: the columns that are shares, shown times 100.
        x_title, y_title: what stands at the axes; by default the names of the columns.
        log: is the x axis logarithmic?
        sideways: do bars lie, so that long names can be read? Dots always do.
        more: what a form needs beside: ranks {"groups": [[name, ...]], "difference": float | None}; a heatmap {"band":
            [low, high]}; any {"line": y} as a reference, {"shown": n} when the other lines wait for a click.
        alt: the figure in one sentence, for those who cannot see it.
        notes: sentences below it.
    """

    kind: ClassVar[str] = "chart"
    form: str = "lines"
    x: str = ""
    y: str = ""
    by: str | None = None
    low: str | None = None
    high: str | None = None
    value: str | None = None
    text: str | None = None
    percent: Sequence[str] = ()
    x_title: str = ""
    y_title: str = ""
    log: bool = False
    sideways: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    alt: str = ""
    notes: Sequence[str] = ()

    def html(self) -> Markup:
        """The place where it is drawn, and its numbers for those who cannot or will not see it."""
        assert self.table is not None
        return Markup(
            '<figure><div class="plot" role="img" aria-label="{}"></div><figcaption>{}</figcaption></figure>{}'
            '<details class="numbers"><summary>the numbers</summary><div class="box">{}</div></details>'
        ).format(self.alt or self.title, self.alt, _notes(self.notes), _plain(self.table))

    def data(self) -> dict[str, Any]:
        """What the page's script draws: plotly's traces and layout."""
        from nearkin.pages.interactive import figure

        return {"figure": figure(self)}


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


def shown(value: Any) -> str:
    """A value as people read it: – for a gap, four digits of a fraction, thousands with commas."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _notes(notes: Sequence[str]) -> Markup:
    return Markup("").join(Markup('<p class="note">{}</p>').format(note) for note in notes)


def _plain(table: Table, most: int = 300) -> Markup:
    """A table without headings to click; the end of a long one is in the download."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in table.header)
    rows = Markup("\n").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup('<td class="number">{}</td>' if _is_number(v) else "<td>{}</td>").format(shown(v)) for v in row
            )
        )
        for row in table.rows[:most]
    )
    rest = len(table.rows) - most
    more = Markup("<p>{}</p>").format(f"and {rest:,} more rows in the download") if rest > 0 else ""
    return Markup("<table><thead><tr>{}</tr></thead><tbody>\n{}\n</tbody></table>{}").format(head, rows, more)


def slug(text: str) -> str:
    """Words as an id: lower case, digits and single hyphens."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in str(escape(text)).lower()).split())
