"""Tables on a terminal."""

import io
import textwrap
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from nearkin.present.table import Table
from nearkin.progress import Screen

WIDTH = 160  # of what has no right edge: a file, a text


def render(table: Table) -> Group:
    """Numbers never wrap, their headings do; words wrap where the terminal ends. Without rows: the title and notes."""
    above = [Text(table.title, "bold")] if table.title else []
    below = [Text("\n".join(table.notes))] if table.notes else []
    if not table.rows:
        return Group(*above, *below)
    grid = Grid(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    texts = table.texts()
    for i, column in enumerate(table.shown):
        cells = [line[i] for line in texts]
        if table.is_numeric(column):
            widest = max(map(len, cells))
            title = column.title.replace(" %", "\u00a0%")
            heading = textwrap.fill(title, max(widest, 12), break_long_words=False)
            grid.add_column(Text(heading), justify="right", no_wrap=True)
        else:
            longest = max((len(word) for cell in cells for word in cell.split()), default=0)
            grid.add_column(Text(column.title), min_width=min(longest, 12), overflow="fold")
    for i, line in enumerate(texts):
        grid.add_row(*map(Text, line), style="red" if i in table.warn else "")
    return Group(*above, grid, *below)


def plain(parts: Iterable[RenderableType]) -> str:
    """What a terminal would print, as a text without colours."""
    file = io.StringIO()
    screen = Screen(file=file, width=WIDTH, no_color=True, force_terminal=False)
    for part in parts:
        screen.print(part, highlight=False, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
