"""`nearkin.analyse`: an analysis of stored runs, each by itself or all together, and where the results are stored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import check_tested
from nearkin.comparison.gather import Gathered, gather
from nearkin.errors import NearkinError
from nearkin.present import Chart, Shown, Table
from nearkin.progress import note_once
from nearkin.registry import ANALYSES
from nearkin.runs.listing import Where, where_words
from nearkin.runs.store import Store
from nearkin.studies.cells import Study

FILES = (".npz", ".parquet")  # of embeddings
NOT_IN_NAMES = re.compile(r"[^\w.=,+ -]")  # of folders


class Analysed(Shown):
    """What analyses of runs gave: numbers, tables of them, charts, and the files in which all is stored.

    Parameters:
        numbers: of one analysis; of several, by name. Of runs that were looked at one by one: by run.
        tables: those of all runs together, else one row per run.
        charts: drawn over the tables.
        files: what was written.
    """

    tables: Sequence[Table] = ()

    def __init__(self, numbers: dict[str, Any], tables: Sequence[Table], charts: Sequence[Chart], files: list[Path]):
        self.numbers, self.tables, self.charts, self.files = numbers, list(tables), list(charts), files

    @property
    def below(self) -> list[str]:
        """Which files were written, a line for each folder."""
        folders = dict.fromkeys(file.parent for file in self.files)
        names = {folder: ", ".join(file.name for file in self.files if file.parent == folder) for folder in folders}
        return [f"stored: {inside} in {folder}" for folder, inside in names.items()]


def analyse(
    analysis: str,
    *names: str | Path,
    runs: Path | str = "runs",
    where: Where = (),
    output: Path | str | None = None,
    **options: Any,
) -> Analysed:
    """Look into what runs have learned, and store what is found with them.

    Parameters:
        analysis: one of `nearkin list analyses`; several as "A,B".
        names: a study (its name or file), a folder of runs, runs (hashes, paths), or files of embeddings (.npz,
            .parquet); nothing for an analysis that needs no run.
        runs: the folder of the stored runs.
        where: only these runs, as {"backbone": "resnet50", "dim": [128, 512]} or "backbone=resnet50". What is found
            over all of them is stored below the study's results, in a folder of that name.
        output: a further folder for the results: those over all runs, or, where runs are looked at one by one, a folder
            for each. What is found in files of embeddings is stored there alone.
        options: of the analysis, as `images=200` or `seed=1`; each goes to the analyses that take it.

    Example:
        nearkin.analyse("similarity", "demo", images=500)
    """
    classes = [ANALYSES[word.strip()] for word in analysis.split(",") if word.strip()]
    if not classes:
        raise NearkinError(f"analyse {analysis!r}: which analysis? choices: {', '.join(ANALYSES.names())}")
    known = sorted(set().union(*(one.takes() for one in classes)))
    for name in sorted(set(options) - set(known)):
        words = f"no option of analysis {analysis}; choices: {', '.join(known) or 'none'}"
        raise NearkinError(f"{name}={options[name]}: {words}")
    if options.get("images") is not None and options["images"] < 1:
        raise NearkinError(f"images={options['images']}: at least 1")
    paths = [Path(name) for name in names]
    if not paths and (lacking := [one.name for one in classes if one.needs_runs]):
        raise NearkinError(f"analyse {lacking[0]}: name a run, a study, or a folder of runs")
    files = [path for path in paths if path.suffix in FILES]
    if files and len(files) < len(paths):
        raise NearkinError(f"{files[0]} is a file of embeddings, {names[0]} is none: one or the other")
    if where and (files or not paths):
        raise NearkinError(f"where={' '.join(where_words(where))}: only stored runs have settings")
    gathered = subjects(list(map(str, names)), runs, where) if paths and not files else None
    further = None if output is None else Path(output)
    done = {}
    for one in classes:
        if files:
            done[one.name] = _saved(one.of_files(files), [further])
        else:
            given = {name: value for name, value in options.items() if name in one.takes()}
            done[one.name] = _of_runs(one, gathered, given, runs, further)
    if len(done) == 1:
        return next(iter(done.values()))
    return Analysed(
        {name: one.numbers for name, one in done.items()},
        [table for one in done.values() for table in one.tables],
        [chart for one in done.values() for chart in one.charts],
        [file for one in done.values() for file in one.files],
    )


def analyse_study(study: Study, runs: Path | str = "runs") -> Iterator[Analysed]:
    """The analyses that the file of a study names, once its runs are stored: of each data set by itself.

    Parameters:
        study: the study.
        runs: the folder of the stored runs.
    """
    several = len(study.data_sets) > 1
    for name, options in study.analyses.items():
        for data in study.data_sets:
            yield analyse(name, study.name, runs=runs, where=(f"data.name={data}",) if several else (), **options)


def subjects(names: Sequence[str], runs: Path | str = "runs", where: Where = ()) -> Gathered:
    """The tested runs under these names: a study, a folder of runs, or runs by path or hash; of them those that `where`
    describes. A run that is named and not tested is an error; of a study the tested ones are taken. Damaged ones among
    several are left out, and a line says so."""
    paths = [Path(name) for name in names]
    if len(names) == 1 and (paths[0] / "spec.yaml").exists():  # a run by its path, of whatever store
        gathered = gather([paths[0].resolve().name], paths[0].resolve().parent, where)
    else:
        gathered = gather(names, runs, where)
    if not gathered.is_study and not (len(names) == 1 and len(gathered.members) > 1):
        for member in gathered.members:
            check_tested(member.run)
    if len(gathered.members) > 1:
        gathered = _without_damaged(gathered)
    for words in gathered.absent:
        if " is damaged: " in words:
            note_once(f"left out: {words}")
    if not gathered.tested:
        raise NearkinError(f"{gathered.name}: none of its {len(gathered.members)} runs is tested: nothing to analyse")
    return gathered


def _without_damaged(gathered: Gathered) -> Gathered:
    """Without the runs whose model or embeddings are not what was stored: all other runs can be looked at."""
    members, absent = [], list(gathered.absent)
    for member in gathered.members:
        try:
            sums = member.run.sums()
            for name in ("model.pt", "embeddings.npz"):
                if sums is not None and sums.of(name):
                    member.run.file(name)
            members.append(member)
        except NearkinError as error:
            absent.append(str(error))
    return replace(gathered, members=members, absent=absent)


def _of_runs(
    analysis: type[Analysis],
    gathered: Gathered | None,
    options: Mapping[str, Any],
    runs: Path | str,
    output: Path | None,
) -> Analysed:
    """Look at runs, one by one or all together, and store what is found with them."""
    by_hash = {} if gathered is None else {member.run.hash: member.run for member in gathered.tested}
    if analysis.together or (len(by_hash) != 1 and analysis.sums_up()):
        over_all = analysis.between(gathered, **options)  # type: ignore[arg-type]
        return _saved(over_all, [folder_of(analysis, gathered, runs), output])
    one_by_one = {}
    for name, run in by_hash.items():
        further = output if output is None or len(by_hash) == 1 else output / name
        one_by_one[name] = _saved(analysis.of(run, **options), [run.path / analysis.folder, further])
    if len(one_by_one) == 1:
        return next(iter(one_by_one.values()))
    assert gathered is not None
    members = {member.run.hash: member for member in gathered.members}
    records, keys = [], ["method", "seed", "run"]
    for name, one in one_by_one.items():
        plain = {key: value for key, value in one.numbers.items() if not isinstance(value, dict | list)}
        method = ", ".join(members[name].labels.values()) or members[name].settings["loss.name"]
        records.append({**plain, "method": method, "seed": members[name].seed, "run": name})
        keys += [key for key in plain if key not in keys]
    numbers = {name: one.numbers for name, one in one_by_one.items()}
    files = [file for one in one_by_one.values() for file in one.files]
    return Analysed(numbers, [Table.of_records(analysis.name, keys, records)], [], files)


def _saved(performed: Analysis, folders: Sequence[Path | None]) -> Analysed:
    files = [file for folder in folders if folder is not None for file in performed.save(folder)]
    return Analysed(performed.numbers, performed.tables, performed.charts, files)


def folder_of(analysis: type[Analysis], gathered: Gathered | None, runs: Path | str = "runs") -> Path:
    """Where results over several runs are stored: with their study, else beside the runs; those of a slice one folder
    deeper."""
    root = Store(runs).root if gathered is None else gathered.store.root
    if gathered is not None and gathered.is_study:
        root = root / "studies" / gathered.name
    folder = root / (analysis.folder or "analysis")
    if gathered is None or not gathered.where:
        return folder
    return folder / NOT_IN_NAMES.sub("-", " ".join(gathered.where))
