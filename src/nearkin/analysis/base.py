"""What an analysis is: numbers first, then a table, then figures."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nearkin.errors import NearkinError
from nearkin.runs.store import Run
from nearkin.storage import atomic


class Analysis:
    """What a finished run has learned, looked at in one way.

    A subclass registers itself (`ANALYSES.register("my_analysis")`) and defines four things: `of(run)` computes the
    numbers, `summary` tells them as plain values, `rows()` in words for a terminal, and `files()` says what else is
    written: further numbers and figures. `nearkin analyse my_analysis RUN` then works.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    @classmethod
    def of(cls, run: Run) -> "Analysis":
        """Look at a finished run."""
        raise NearkinError(f"analysis {cls.__name__} does not define of(run)")

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers, as JSON has them."""
        raise NearkinError(f"analysis {type(self).__name__} does not define summary")

    def rows(self) -> list[list[str]]:
        """The numbers in words: what, value."""
        return [[name, str(value)] for name, value in self.summary.items()]

    def files(self) -> Mapping[str, Callable[[Path], Any]]:
        """File name -> what writes that file."""
        return {}

    def save(self, folder: Path) -> list[Path]:
        """Write NAME.json and all `files()` into a folder, each whole or not at all."""
        text = json.dumps(self.summary, indent=1, ensure_ascii=False) + "\n"
        writers: dict[str, Callable[[Path], Any]] = {f"{self.name}.json": lambda path: path.write_text(text)}
        writers |= self.files()
        for name, write in writers.items():
            with atomic(folder / name) as scratch:
                write(scratch / name)
        return [folder / name for name in writers]
