"""What `nearkin analyse` has stored with a study or a run: its charts and tables. Nothing is computed here."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from markupsafe import Markup

from nearkin.analysis.base import Analysis, Stored, plain_values, stored, stored_numbers
from nearkin.analysis.perform import folder_of
from nearkin.comparison.gather import Gathered
from nearkin.pages.base import Grid, Part, Section, Words, slug
from nearkin.pages.base import Table as Download
from nearkin.present import Chart, Pictures, Table, sentence
from nearkin.present.html import sentences
from nearkin.registry import ANALYSES

LARGEST = 300_000  # bytes of a picture that a page takes in as it is; larger ones lose a little quality
LONG = 12  # rows of a table that waits behind its title
MOST = 300  # rows of the numbers below a chart; the download has all


class Picture(Part):
    """A stored picture, inside the page.

    Parameters:
        chart: the sheet of images, with the file that holds it.
        id: unique in the page.
    """

    def __init__(self, chart: Pictures, id: str = ""):
        super().__init__(id, chart.title)
        self.chart = chart

    def html(self) -> Markup:
        """<img> with the picture inside."""
        kind, content = "png", Path(self.chart.file).read_bytes()
        if len(content) > LARGEST:
            kind, content = "webp", smaller(content)
        return Markup(
            '<figure><img class="stored" src="data:image/{};base64,{}" alt="{}"><figcaption>{}</figcaption></figure>{}'
        ).format(
            kind,
            base64.b64encode(content).decode(),
            self.chart.alt or self.chart.title,
            self.chart.alt,
            sentences(self.chart.notes),
        )


class Drawn(Part):
    """A chart that the page's script draws.

    Parameters:
        chart: what is drawn.
        id: unique in the page.
    """

    kind: ClassVar[str] = "chart"

    def __init__(self, chart: Chart, id: str):
        tables = [chart.table, *(panel.table for panel in getattr(chart, "charts", ()))]
        self.chart, self.numbers = chart, next(table for table in tables if table.columns)
        super().__init__(id, chart.title, download(self.numbers, id))

    def html(self) -> Markup:
        """The place where it is drawn, and its numbers for those who cannot or will not see it."""
        return Markup(
            '<figure><div class="plot" role="img" aria-label="{}"></div><figcaption>{}</figcaption></figure>{}'
            '<details class="numbers"><summary>the numbers</summary><div class="box">{}</div></details>'
        ).format(
            self.chart.alt or self.chart.title,
            self.chart.alt,
            sentences(self.chart.notes),
            self.numbers.html(most=MOST, caption=False),
        )

    def data(self) -> dict[str, Any]:
        """What the page's script draws: plotly's traces and layout."""
        return {"figure": self.chart.plotly()}


class Tabled(Grid):
    """A table that is sorted by a click on a heading.

    Parameters:
        table: what it shows, as it renders itself.
        id: unique in the page.
        title: its heading where it has none of its own.
        looks: those of a grid: filters, search, folded.
    """

    def __init__(self, table: Table, id: str, title: str = "", **looks: Any):
        looks.setdefault("folded", len(table.rows) > LONG)
        super().__init__(id, table.title or title, download(table, id), notes=list(map(sentence, table.notes)), **looks)
        self.shown = table

    def html(self) -> Markup:
        """The whole table."""
        inner = Markup('<div class="filters"></div><div class="box">{}</div>{}').format(
            self.shown.html(notes=False), sentences(self.notes)
        )
        if not self.folded:
            return inner
        return Markup("<details><summary>{} rows</summary>{}</details>").format(len(self.shown.rows), inner)


def download(table: Table, name: str) -> Download:
    """The plain values of a table, as the page holds them."""
    return Download(name, table.header, table.rows)


def smaller(png: bytes) -> bytes:
    """A picture as WebP."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(out, "webp", quality=85)
    return out.getvalue()


def sections(gathered: Gathered) -> list[Section]:
    """One for each registered analysis that was stored with the study, or with the run where there is one; a last one
    has the numbers of runs that were looked at alone."""
    made, alone = [], []
    for name in ANALYSES.names():
        analysis = ANALYSES[name]
        parts: list[Part] = []
        if gathered.is_study:  # what lies beside runs without a study is of others
            parts = _parts(analysis, folder_of(analysis, gathered), gathered.name, gathered.where)
        elif len(gathered.tested) == 1:
            run = gathered.tested[0].run
            parts = _parts(analysis, run.path / analysis.folder, run.hash)
        if parts:
            lead = " ".join((analysis.__doc__ or name).split("\n\n")[0].split())
            made.append(Section(f"analysis-{slug(name)}", f"Analysis: {name}", lead, parts))
        else:
            alone += _numbers(gathered, analysis)
    if alone:
        table = Table("analyses", ["analysis", "method", "seed", "run", "what", "value"], alone, "Numbers")
        looks: dict[str, Any] = {"filters": ["analysis"], "search": len(alone) > 20, "folded": len(alone) > 60}
        grid = Tabled(table, "analyses-grid", **looks)
        made.append(Section("analyses", "Analyses of single runs", "What `nearkin analyse` found in them.", [grid]))
    return made


def _parts(analysis: type[Analysis], folder: Path, subject: str, where: Sequence[str] = ()) -> list[Part]:
    """The charts and tables that a folder holds; where these are of an earlier version, how to make them again."""
    content = stored(analysis, folder)
    if content is None:
        command = " --where ".join([f"nearkin analyse {analysis.name} {subject}", *where])
        again = f"What is stored here was written by another version; `{command}` renews it."
        return [Words(again)] if (folder / f"{analysis.name}.json").is_file() else []
    name = f"analysis-{slug(analysis.name)}"
    parts: list[Part] = []
    for chart in content.charts:
        id = f"{name}-chart-{slug(chart.name)}"
        parts.append(Picture(chart, id) if isinstance(chart, Pictures) else Drawn(chart, id))
    tables = _not_drawn(content)
    return [*parts, *(Tabled(table, f"{name}-{slug(table.name)}", analysis.name) for table in tables)]


def _not_drawn(content: Stored) -> list[Table]:
    """The tables but those details whose numbers stand below a chart."""
    drawn = [one.table for chart in content.charts for one in (chart, *getattr(chart, "charts", ()))]
    return [table for table in content.tables if not (table.detail and any(table is one for one in drawn))]


def _numbers(gathered: Gathered, analysis: type[Analysis]) -> list[list[Any]]:
    """The numbers in NAME.json of the runs."""
    rows = []
    for member in {m.run.hash: m for m in gathered.tested}.values():
        label = ", ".join(member.labels.values()) or member.settings["loss.name"]
        numbers = plain_values(stored_numbers(analysis, member.run.path / analysis.folder) or {})
        rows += [[analysis.name, label, member.seed, member.run.hash, what, value] for what, value in numbers.items()]
    return rows
