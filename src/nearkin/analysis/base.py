"""What an analysis is: numbers first, then tables, then figures."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from nearkin.comparison.gather import Gathered
from nearkin.comparison.pages import Sheet, sentence
from nearkin.errors import NearkinError
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.storage import atomic

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]  # names of the columns, rows of plain values; None: no value


class Analysis:
    """What finished runs have learned, looked at in one way.

    A subclass registers itself (`ANALYSES.register("my_analysis")`) and defines `of(run)`, or, if it compares runs with
    each other (`together = True`), `between(gathered)`; then `summary`, the numbers as plain values. `rows()` or
    `sheets()` tell them in words for a terminal, `tables()` as rows of real numbers, and `files()` says what else is
    written: further numbers and figures. `nearkin analyse my_analysis RUN` then works.

    The keyword-only parameters of `of` and `between` are its options. An analysis that has some keeps them in
    `options`; version and options are then stored with the numbers.

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
    def summary(self) -> dict[str, Any]:
        """The numbers, as JSON has them."""
        raise NearkinError(f"analysis {type(self).__name__} does not define summary")

    @property
    def content(self) -> dict[str, Any]:
        """What NAME.json holds: the summary, and before it version and options where there are options."""
        if self.options is None:
            return self.summary
        return {"version": self.version, "options": dict(self.options), **self.summary}

    def rows(self) -> list[list[str]]:
        """The numbers in words: what, value."""
        return [[name, str(value)] for name, value in self.summary.items()]

    def sheets(self) -> dict[str, Sheet]:
        """The numbers in words as tables, by name; one of `rows()` unless a subclass has more to tell."""
        return {self.name: Sheet("", ["what", "value"], self.rows(), 1)}

    def tables(self) -> Mapping[str, Table]:
        """Name -> names of the columns and rows of real numbers."""
        return {}

    def files(self) -> Mapping[str, Callable[[Path], Any]]:
        """File name -> what writes that file."""
        return {}

    def save(self, folder: Path) -> list[Path]:
        """Write NAME.json, NAME-TABLE.parquet of all `tables()`, NAME-sheets.json (what the report shows), NAME.md
        where there are `sheets()`, and all `files()` into a folder, each whole or not at all."""
        text = json.dumps(self.content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        writers: dict[str, Callable[[Path], Any]] = {f"{self.name}.json": lambda path: path.write_text(text)}
        for name, table in self.tables().items():
            writers[f"{self.name}-{name}.parquet"] = partial(write_parquet, table)
        told = self.sheets()
        writers[f"{self.name}-sheets.json"] = lambda path: path.write_text(
            json.dumps([asdict(sheet) for sheet in told.values()], indent=1, ensure_ascii=False) + "\n"
        )
        if type(self).sheets is not Analysis.sheets:
            writers[f"{self.name}.md"] = lambda path: path.write_text(markdown(told))
        writers |= self.files()
        for name, write in writers.items():
            with atomic(folder / name) as scratch:
                write(scratch / name)
        return [folder / name for name in writers]


def write_parquet(table: Table, path: Path) -> None:
    """One table of plain values as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header, rows = table
    columns = zip(*rows, strict=True) if rows else [() for _ in header]
    pq.write_table(pa.table({name: list(values) for name, values in zip(header, columns, strict=True)}), path)


def markdown(sheets: Mapping[str, Sheet]) -> str:
    """Tables as Markdown, each under its title and with its notes below."""
    parts = []
    for sheet in sheets.values():
        rule = ["---"] * (len(sheet.header) - sheet.numbers) + ["---:"] * sheet.numbers
        lines = [
            "| " + " | ".join(text.replace("|", r"\|") for text in line) + " |"
            for line in (sheet.header, rule, *sheet.rows)
        ]
        notes = [sentence(note) for note in sheet.notes]
        parts.append("\n\n".join([*([f"**{sheet.title}**"] if sheet.title else []), "\n".join(lines), *notes]))
    return "\n\n".join(parts) + "\n"


ANALYSES.takes(Analysis, words="a nearkin.analysis.Analysis")
