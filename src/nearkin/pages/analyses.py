"""What `nearkin analyse` has stored with a study or a run: its tables and figures. Nothing is computed here."""

import base64
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from nearkin.analysis.base import Analysis
from nearkin.analysis.perform import folder_of
from nearkin.comparison.gather import Gathered
from nearkin.comparison.pages import Sheet
from nearkin.pages.base import Grid, Part, Section, slug
from nearkin.present import Column, Table, sentence
from nearkin.registry import ANALYSES
from nearkin.units import COUNT, NUMBER

LARGEST = 300_000  # bytes of a figure that a page takes in as it is; larger ones lose a little quality
LONG = 12  # rows of a table that waits behind its title


class Picture(Part):
    """A stored figure, inside the page.

    Parameters:
        file: a PNG file.
        alt: it in words.
    """

    def __init__(self, file: Path, alt: str):
        super().__init__("", "")
        self.file, self.alt = file, alt

    def html(self) -> Markup:
        """<img> with the picture inside."""
        kind, content = "png", self.file.read_bytes()
        if len(content) > LARGEST:
            kind, content = "webp", smaller(content)
        return Markup(
            '<figure><img class="stored" src="data:image/{};base64,{}" alt="{}"><figcaption>{}</figcaption></figure>'
        ).format(kind, base64.b64encode(content).decode(), self.alt, self.alt)


def smaller(png: bytes) -> bytes:
    """A picture as WebP."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(out, "webp", quality=85)
    return out.getvalue()


def sections(gathered: Gathered) -> list[Section]:
    """One for each registered analysis that was stored with the study, or with the run where there is one; a last one
    has the numbers of runs that were looked at alone."""
    found, alone = [], []
    for name in ANALYSES.names():
        analysis = ANALYSES[name]
        parts: list[Part] = []
        if gathered.axes:  # what lies beside runs without a study is of others
            parts = _stored(folder_of(analysis, gathered), name)
        elif len(gathered.tested) == 1:
            parts = _stored(gathered.tested[0].run.path / analysis.folder, name)
        if parts:
            lead = " ".join((analysis.__doc__ or name).split("\n\n")[0].split())
            found.append(Section(f"analysis-{slug(name)}", f"Analysis: {name}", lead, parts))
        else:
            alone += _numbers(gathered, analysis)
    if alone:
        table = Table("analyses", ["analysis", "method", "seed", "run", "what", "value"], alone, "Numbers")
        grid = Grid(table, "analyses-grid", filters=["analysis"], search=len(alone) > 20, folded=len(alone) > 60)
        found.append(Section("analyses", "Analyses of single runs", "What `nearkin analyse` found in them.", [grid]))
    return found


def _stored(folder: Path, name: str) -> list[Part]:
    """The tables in NAME-sheets.json and the figures NAME*.png of a folder, both as `Analysis.save` writes them."""
    try:
        sheets = [Sheet(**sheet) for sheet in json.loads((folder / f"{name}-sheets.json").read_text())]
    except (OSError, ValueError, TypeError):
        return []
    pictures = [Picture(file, file.stem.replace("_", " ")) for file in sorted(folder.glob(f"{name}*.png"))]
    return [*pictures, *(_grid(f"analysis-{slug(name)}-{i}", name, sheet) for i, sheet in enumerate(sheets, start=1))]


def _grid(id: str, name: str, sheet: Sheet) -> Grid:
    header: list[str] = []
    for word in sheet.header:  # two columns may be called the same
        header.append(word if word not in header else f"{word} ({header.count(word) + 1})")
    texts = len(header) - max(sheet.numbers, 0)
    columns, values = [], []
    for i, word in enumerate(header):
        cells = [row[i] for row in sheet.rows]
        numbers = i >= texts and all(cell == "–" or PRINTED.fullmatch(cell) for cell in cells)
        columns.append(_numeric(word, cells) if numbers else Column(word))
        values.append([_number(cell) for cell in cells] if numbers else cells)
    notes = [sentence(note) for note in sheet.notes]
    table = Table(id, columns, [list(row) for row in zip(*values, strict=True)], sheet.title or name, notes)
    return Grid(table, folded=len(table) > LONG)


# a number as tables print it. Only columns that a sheet declares as numbers are read, and as a whole, so that they
# sort: a class that is called 007 or 1_2 stays what it is.
PRINTED = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d+)?")


def _number(cell: str) -> int | float | None:
    if cell == "–":
        return None
    return float(cell) if "." in cell else int(cell)


def _numeric(name: str, cells: Sequence[str]) -> Column:
    """A column that shows numbers with as many decimals as were stored; whole ones without, signs where there were
    some."""
    digits = max((len(cell.partition(".")[2]) for cell in cells if cell != "–"), default=0)
    signed = any(cell.startswith("+") for cell in cells)
    return Column(name, unit=NUMBER if digits else COUNT, digits=digits, signed=signed)


def _numbers(gathered: Gathered, analysis: type[Analysis]) -> list[list[Any]]:
    """The numbers in NAME.json of the runs."""
    rows = []
    for member in {m.run.hash: m for m in gathered.tested}.values():
        folder = member.run.path / analysis.folder
        if (folder / f"{analysis.name}.json").is_file():
            label = ", ".join(member.labels.values()) or member.settings["loss.name"]
            told = json.loads((folder / f"{analysis.name}.json").read_text())
            rows += [
                [analysis.name, label, member.seed, member.run.hash, what, value] for what, value in _flat(told).items()
            ]
    return rows


def _flat(told: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Plain values of a summary, nested ones by dotted names; long lists are left to the files."""
    found: dict[str, Any] = {}
    for key, value in told.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{key}.")
        elif not isinstance(value, list) or len(value) <= 8:
            found[before + key] = (
                value if isinstance(value, int | float | str | None) else json.dumps(value, ensure_ascii=False)
            )
    return found
