"""`nearkin.report`: stored runs as one page, written to a file."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError
from nearkin.fitting.stored import stored_fit
from nearkin.pages._base import Grid
from nearkin.pages._build import build, build_of_fit
from nearkin.pages._export import export as export_files
from nearkin.pages._page import Page, render
from nearkin.present import Shown, Table
from nearkin.runs.listing import Where
from nearkin.runs.store import Store
from nearkin.storage import atomic, check_folder, check_writable
from nearkin.units import BYTES, counted

MAIN = ("leaderboard-grid", "result")  # ids of the grids that a report is about: of a study, of a run


@dataclass
class Report(Shown):
    """A page that was written.

    Parameters:
        path: the page.
        page: what it shows.
        files: charts and tables that were written beside it.
    """

    path: Path
    page: Page
    files: Sequence[Path] = ()

    @property
    def tables(self) -> list[Table]:
        """The leaderboard of every data set; of one run its metrics."""
        grids = [part for part in self.page.parts if isinstance(part, Grid) and part.id.startswith(MAIN)]
        return [grid.table for grid in grids if grid.table is not None]

    @property
    def words(self) -> list[str]:
        """Where it was written."""
        size = BYTES.text(self.path.stat().st_size) if self.path.exists() else "gone"
        beside = [f"{counted(len(self.files), 'file')} in {self.files[0].parent}"] if self.files else []
        return [f"written: {line}" for line in (f"{self.path} ({size}); open it in a browser", *beside)]


def report(
    *names: str,
    runs: Path | str = "runs",
    output: Path | str = "report.html",
    metric: str = "map_at_r",
    by: Sequence[str] | None = None,
    where: Where = (),
    published: str | None = None,
    export: Path | str | None = None,
    map: bool = True,
) -> Report:
    """Turn a study, a fit, several runs or one run into one HTML page that opens offline; nothing is trained.

    Parameters:
        names: a study (its name or file), a fit (its name or its model), a folder of runs, or runs: hashes, paths.
        runs: the folder of the stored runs.
        output: the page that is written.
        metric: what rows are compared by; it must be stored.
        by: what rows are, as ["data", "loss"]; None: all axes of the study.
        where: only these runs, as {"backbone": "resnet50", "dim": [128, 512]} or "backbone=resnet50".
        published: id of a published table that stands beside.
        export: a folder for charts, sheets of images and maps (PNG, SVG) and for tables (CSV, Markdown, LaTeX).
        map: is there a map of the embeddings? It takes the longest.

    Example:
        nearkin.report("demo", output="demo.html").tables[0].to_pandas()
    """
    if not names:
        raise NearkinError("nothing to report: name a study, a folder of runs, or runs")
    path = Path(output).expanduser()
    if path.suffix.lower() not in (".html", ".htm"):
        raise NearkinError(f"output={path}: the page is HTML, as in {path.with_suffix('.html')}")
    fitted = stored_fit(names[0], Store(runs)) if len(names) == 1 else None
    gathered = gather(names, runs, where) if fitted is None else None
    check_writable(path)
    folder = None if export is None else Path(export).expanduser()
    if folder is not None:
        check_folder(folder)
    options = {"metric": None if metric == "map_at_r" else metric, "by": ",".join(by) if by else None}
    if gathered is not None:
        command = _command(names, path, map, **options, where=gathered.where, published=published)
        page = build(gathered, metric=metric, by=by, published=published, map=map, command=command)
    else:
        assert fitted is not None
        given = [key for key, value in (*options.items(), ("where", where), ("published", published)) if value]
        if given:
            raise NearkinError(f"{given[0]}=...: the page of a fit has no such choice; leave it out")
        page = build_of_fit(fitted, map=map, command=_command(names, path, map))
    with atomic(path) as scratch:
        (scratch / path.name).write_text(render(page), encoding="utf-8")
    return Report(path, page, export_files(page, folder) if folder is not None else ())


def _command(names: Sequence[str], path: Path, with_map: bool, **options: str | Sequence[str] | None) -> str:
    """How the page is made again, without folders of this machine."""
    words = [Path(name).name if Path(name).is_absolute() else name for name in names]
    words += ["-o", path.name]
    for name, value in options.items():
        for word in [value] if isinstance(value, str) else value or ():
            words += [f"--{name}", word]
    return shlex.join(["nearkin", "report", *words, *([] if with_map else ["--no-map"])])
