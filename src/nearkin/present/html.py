"""Tables in HTML."""

from collections.abc import Sequence

from markupsafe import Markup

from nearkin.present.files import sentence
from nearkin.present.table import Table


def render(table: Table, *, most: int | None = None, caption: bool = True, notes: bool = True) -> Markup:
    """A table with headings that a script can sort by: `data-column` is the place of a column among all columns,
    `data-row` that of a row.

    Parameters:
        table: what to show.
        most: rows that are shown; how many more there are stands below them.
        caption: is the title above it?
        notes: are the notes below it?
    """
    header, shown = table.header, table.shown
    right = [table.is_numeric(column) for column in shown]
    head = Markup("").join(
        Markup('<th scope="col" data-column="{}"{}{}>{}</th>').format(
            header.index(column.name),
            Markup(' class="number"') if number else "",
            Markup(' title="{}"').format(column.about) if column.about else "",
            column.title,
        )
        for column, number in zip(shown, right, strict=True)
    )
    lines = []
    for i, texts in enumerate(table.texts()[:most]):
        cells = [
            Markup('<td class="number">{}</td>' if number else "<td>{}</td>").format(text)
            for text, number in zip(texts, right, strict=True)
        ]
        warn = Markup(' class="warning"') if i in table.warn else ""
        lines.append(Markup('<tr data-row="{}"{}>{}</tr>').format(i, warn, Markup("").join(cells)))
    above = Markup("<caption>{}</caption>").format(table.title) if caption and table.title else ""
    rest = len(table.rows) - len(lines)
    more = [f"and {rest:,} more rows in the download"] if rest else []
    return Markup("<table>{}<thead><tr>{}</tr></thead><tbody>\n{}\n</tbody></table>{}").format(
        above, head, Markup("\n").join(lines), sentences([*more, *(table.notes if notes else [])])
    )


def sentences(notes: Sequence[str]) -> Markup:
    """Notes as sentences, one paragraph each."""
    return Markup("").join(Markup('<p class="note">{}</p>').format(sentence(note)) for note in notes)
