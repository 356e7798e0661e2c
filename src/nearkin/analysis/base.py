"""What an analysis is: numbers, tables of them, and charts of the tables; how it is stored and read again."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.present import Chart, Pictures, Table, described, read
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.storage import UNREADABLE, atomic

FORM = {"version", "options", "numbers", "tables", "charts"}  # what NAME.json holds


class Analysis:
    """What finished runs have learned, looked at in one way.

    A subclass registers itself (`ANALYSES.register("my_analysis")`) and defines `of(run)`, or, if it compares runs with
    each other (`together = True`), `between(gathered)`; then `numbers`. `tables` show them in a terminal, in the report
    and in files, `charts` draw columns of these tables, and `arrays` are what is too large for a table.
    `nearkin analyse my_analysis RUN` then works.

    The keyword-only parameters of `of` and `between` are its options; what they were is stored from `options`.

    Class attributes:
        together: it compares runs with each other; otherwise it looks at each run by itself, and `between`, where it
            is defined, sums the runs of a study up.
        needs_runs: it looks at stored runs; otherwise `between(None)` works.
        needs_pixels: it needs the images themselves, not only stored embeddings.
        folder: where results are stored, below the folder of a run or of a study; "" is that folder itself.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    together: ClassVar[bool] = False
    needs_runs: ClassVar[bool] = True
    needs_pixels: ClassVar[bool] = False
    folder: ClassVar[str] = "analysis"
    options: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, run: Run) -> "Analysis":
        """Look at a finished run; options are keyword-only parameters."""
        raise NearkinError(f"analysis {cls.__name__} does not define of(run)")

    @classmethod
    def between(cls, gathered: Gathered) -> "Analysis":
        """Compare the tested runs of a study, or runs by name; options are keyword-only parameters."""
        raise NearkinError(f"analysis {cls.__name__} does not define between(gathered)")

    @classmethod
    def of_files(cls, paths: Sequence[Path]) -> "Analysis":
        """Look at anyone's embeddings: .npz or .parquet files. For analyses that need neither images nor a run."""
        raise NearkinError(f"analysis {cls.name} looks at stored runs, not at files of embeddings")

    @classmethod
    def sums_up(cls) -> bool:
        """Does it define `between`?"""
        return cls.between.__func__ is not Analysis.between.__func__  # type: ignore[attr-defined]

    @classmethod
    def takes(cls) -> set[str]:
        """The names of its options."""
        entry = cls.between if cls.together else cls.of
        return {p.name for p in inspect.signature(entry).parameters.values() if p.kind is p.KEYWORD_ONLY}

    @property
    def numbers(self) -> dict[str, Any]:
        """What it found, as JSON has it."""
        raise NearkinError(f"analysis {type(self).__name__} does not define numbers")

    @property
    def tables(self) -> Sequence[Table]:
        """The numbers as tables; by default one row of all that are no lists."""
        plain = plain_values(self.numbers)
        return [Table("numbers", list(plain), [list(plain.values())])] if plain else []

    @property
    def charts(self) -> Sequence[Chart]:
        """Charts of columns of the tables."""
        return ()

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """What NAME.npz holds."""
        return {}

    def save(self, folder: Path) -> list[Path]:
        """Write what was found into a folder, each file whole or not at all.

        NAME-TABLE.parquet and NAME-CHART.png are its tables and charts, NAME.md the tables that are no details,
        NAME.npz the arrays. NAME.json is written last, so that it tells of what is there.
        """
        tables, charts = list(self.tables), list(self.charts)
        files = [table.write(folder / f"{self.name}-{table.name}.parquet") for table in tables]
        for chart in charts:
            files += chart.save(folder / f"{self.name}-{chart.name}", (".png",))
        if self.arrays:
            with atomic(folder / f"{self.name}.npz") as scratch:
                np.savez_compressed(scratch / f"{self.name}.npz", **self.arrays)  # type: ignore[arg-type]
            files.append(folder / f"{self.name}.npz")
        content = {
            "version": self.version,
            "options": dict(self.options or {}),
            "numbers": self.numbers,
            "tables": [table.name for table in tables],
            "charts": [chart.describe() for chart in charts],
        }
        pages = [f"**{table.title or self.name}**\n\n{table.markdown()}" for table in tables if not table.detail]
        for name, text in (
            (f"{self.name}.md", "\n".join(pages)),
            (f"{self.name}.json", json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"),
        ):
            with atomic(folder / name) as scratch:
                (scratch / name).write_text(text, encoding="utf-8")
            files.append(folder / name)
        return files


@dataclass
class Stored:
    """What a folder holds of an analysis."""

    numbers: dict[str, Any]
    tables: list[Table]
    charts: list[Chart]


def stored_numbers(
    analysis: type[Analysis], folder: Path, options: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The numbers in NAME.json of a folder; None where there are none of this form, this version and these options."""
    content = _content(analysis, folder)
    same = options is None or content.get("options") == json.loads(json.dumps(options))
    return content["numbers"] if content and same else None


def stored_with_run(
    analysis: type[Analysis], run: Run, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Numbers and arrays that are stored with a run; None where one of them is not, or cannot be read."""
    numbers = stored_numbers(analysis, run.path / analysis.folder, options)
    try:
        with np.load(run.path / analysis.folder / f"{analysis.name}.npz") as file:
            return None if numbers is None else (numbers, dict(file))
    except UNREADABLE:
        return None


def stored(analysis: type[Analysis], folder: Path) -> Stored | None:
    """What a folder holds of an analysis; None where that is nothing, of another form or version, or damaged."""
    content = _content(analysis, folder)
    if not content:
        return None
    try:
        tables = {name: read(folder / f"{analysis.name}-{name}.parquet") for name in content["tables"]}
        charts = [described(chart, tables) for chart in content["charts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    for chart in charts:
        if isinstance(chart, Pictures):
            chart.file = str(folder / f"{analysis.name}-{chart.name}.png")
    return Stored(content["numbers"], list(tables.values()), charts)


def _content(analysis: type[Analysis], folder: Path) -> dict[str, Any]:
    """What NAME.json holds; nothing where it is of another form or version, or damaged."""
    try:
        content = json.loads((folder / f"{analysis.name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(content, dict) and set(content) == FORM and content["version"] == analysis.version
    return content if whole else {}


def plain_values(numbers: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The values that are no lists; those of nested dictionaries by dotted names."""
    values: dict[str, Any] = {}
    for key, value in numbers.items():
        if isinstance(value, Mapping):
            values |= plain_values(value, f"{before}{key}.")
        elif not isinstance(value, list):
            values[before + key] = value
    return values


ANALYSES.takes(Analysis, words="a nearkin.analysis.Analysis")
