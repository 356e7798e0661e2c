"""What `nearkin analyse` has stored with a study or a run: its charts and tables. Nothing is computed here."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from nearkin.analysis.base import Analysis, Stored, plain_values, stored, stored_numbers
from nearkin.analysis.perform import folder_of
from nearkin.comparison.gather import Gathered
from nearkin.pages._base import Figure, Grid, Part, Section, Words, slug
from nearkin.pages._members import distinct, method_of
from nearkin.pages._pictured import Picture
from nearkin.pages._sprite import encoded, form
from nearkin.present import Pictures, Table
from nearkin.registry import ANALYSES

LARGEST = 300_000  # bytes of a picture that a page takes in as it is; larger ones lose a little quality
LONG = 12  # rows of a table that waits behind its title


def picture(chart: Pictures, id: str = "") -> Picture:
    """A stored sheet of images, inside the page."""
    kind, content = "png", Path(chart.file).read_bytes()
    if len(content) > LARGEST:
        kind, content = form(), encoded(Image.open(io.BytesIO(content)).convert("RGB"), quality=85)
    return Picture(id, chart.title, content, kind, chart.alt, notes=chart.notes)


def sections(gathered: Gathered) -> list[Section]:
    """One for each registered analysis that was stored with the study, or with the run where there is one; a last one
    has the numbers of runs that were looked at alone."""
    shown, alone = [], []
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
            shown.append(Section(f"analysis-{slug(name)}", f"Analysis: {name}", lead, parts))
        else:
            alone += _numbers(gathered, analysis)
    if alone:
        table = Table("analyses", ["analysis", "method", "seed", "run", "what", "value"], alone, "Numbers")
        grid = Grid(table, "analyses-grid", filters=["analysis"], search=len(alone) > 20, folded=len(alone) > 60)
        shown.append(Section("analyses", "Analyses of single runs", "What `nearkin analyse` found in them.", [grid]))
    return shown


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
        parts.append(picture(chart, id) if isinstance(chart, Pictures) else Figure(chart, id=id))
    for table in _not_drawn(content):
        titled = table if table.title else replace(table, title=analysis.name)
        parts.append(Grid(titled, f"{name}-{slug(table.name)}", folded=len(table) > LONG))
    return parts


def _not_drawn(content: Stored) -> list[Table]:
    """The tables but those details whose numbers stand below a chart."""
    drawn = [one.table for chart in content.charts for one in (chart, *getattr(chart, "charts", ()))]
    return [table for table in content.tables if not (table.detail and any(table is one for one in drawn))]


def _numbers(gathered: Gathered, analysis: type[Analysis]) -> list[list[Any]]:
    """The numbers in NAME.json of the runs."""
    rows = []
    for member in distinct(gathered.tested):
        numbers = plain_values(stored_numbers(analysis, member.run.path / analysis.folder) or {})
        rows += [
            [analysis.name, method_of(member), member.seed, member.run.hash, what, value]
            for what, value in numbers.items()
        ]
    return rows
