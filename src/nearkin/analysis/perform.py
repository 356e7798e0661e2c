"""An analysis on stored runs: each by itself or all together, and where the results are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import check_tested
from nearkin.comparison.gather import Gathered, gather
from nearkin.comparison.pages import Sheet
from nearkin.errors import NearkinError
from nearkin.progress import note_once
from nearkin.runs.store import Store


@dataclass
class Performed:
    """What an analysis found, and where it is stored."""

    each: dict[str, Analysis] = field(default_factory=dict)  # run -> what was found in it
    all: Analysis | None = None  # over all runs
    files: list[Path] = field(default_factory=list)
    gathered: Gathered | None = None

    @property
    def told(self) -> dict[str, Any]:
        """The summary over all runs, else that of the one run, else the summary of each run."""
        if self.all is not None:
            return self.all.summary
        summaries = {name: found.summary for name, found in self.each.items()}
        return next(iter(summaries.values())) if len(summaries) == 1 else summaries

    def sheets(self) -> dict[str, Sheet]:
        """The tables that tell it: those over all runs, else those of the one run, else one row per run."""
        if self.all is not None:
            return self.all.sheets()
        if len(self.each) == 1:
            return next(iter(self.each.values())).sheets()
        return {"runs": self._one_row_per_run()}

    def _one_row_per_run(self) -> Sheet:
        assert self.gathered is not None
        methods = {
            m.run.hash: (", ".join(m.labels.values()) or m.settings["loss.name"], str(m.seed))
            for m in self.gathered.members
        }
        plain = {
            name: {k: v for k, v in found.summary.items() if not isinstance(v, dict | list)}
            for name, found in self.each.items()
        }
        keys = list(dict.fromkeys(key for own in plain.values() for key in own))
        rows = [[*methods[name], name, *(_text(own.get(key)) for key in keys)] for name, own in plain.items()]
        return Sheet("", ["method", "seed", "run", *keys], rows, len(keys))


def subjects(names: Sequence[str], runs: Path | str = "runs") -> Gathered:
    """The tested runs under these names: a study, a folder of runs, or runs by path or hash. A run that is named and
    not tested is an error; of a study the tested ones are taken. Damaged ones among several are left out, and a line
    says so."""
    paths = [Path(name) for name in names]
    if len(names) == 1 and (paths[0] / "spec.yaml").exists():  # a run by its path, of whatever store
        gathered = gather([paths[0].resolve().name], paths[0].resolve().parent)
    else:
        gathered = gather(names, runs)
    if not gathered.axes and not (len(names) == 1 and len(gathered.members) > 1):
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


def perform(
    analysis: type[Analysis],
    gathered: Gathered | None,
    options: Mapping[str, Any],
    *,
    runs: Path | str = "runs",
    output: Path | None = None,
) -> Performed:
    """Look at runs and store what is found with them.

    Parameters:
        analysis: the class.
        gathered: the runs, as `subjects` gives them; None for an analysis that needs none.
        options: keyword arguments of its `of` or `between`.
        runs: the folder of the stored runs, for an analysis without runs.
        output: a further folder for the results: those over all runs, or, where runs are looked at one by one, a folder
            for each.
    """
    done = Performed(gathered=gathered)
    members = {} if gathered is None else {member.run.hash: member.run for member in gathered.tested}
    if not analysis.together and (len(members) == 1 or not analysis.sums_up()):
        for name, run in members.items():
            found = done.each[name] = analysis.of(run, **options)
            done.files += found.save(run.path / analysis.folder)
            if output is not None:
                done.files += found.save(output if len(members) == 1 else output / name)
        return done
    done.all = analysis.between(gathered, **options)  # type: ignore[arg-type]
    done.files += done.all.save(folder_of(analysis, gathered, runs))
    if output is not None:
        done.files += done.all.save(output)
    return done


def perform_on_files(analysis: type[Analysis], paths: Sequence[Path], output: Path | None = None) -> Performed:
    """Look at files of embeddings; what is found is stored in `output` alone."""
    found = analysis.of_files(paths)
    return Performed(all=found, files=found.save(output) if output is not None else [])


def folder_of(analysis: type[Analysis], gathered: Gathered | None, runs: Path | str = "runs") -> Path:
    """Where results over several runs are stored: with their study, else beside the runs."""
    if gathered is None or not gathered.axes:
        return (Store(runs).root if gathered is None else gathered.store.root) / (analysis.folder or "analysis")
    return gathered.store.root / "studies" / gathered.name / (analysis.folder or "analysis")


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
