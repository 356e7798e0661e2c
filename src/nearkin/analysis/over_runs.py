"""What is found in single runs, over the seeds and folds of each method of a study; what is stored is read."""

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearkin.analysis.base import Analysis
from nearkin.comparison.gather import Gathered, Member, label_of
from nearkin.comparison.method import kind_of
from nearkin.errors import NearkinError
from nearkin.progress import track
from nearkin.runs.store import Run
from nearkin.statistics.intervals import Interval, mean_interval
from nearkin.studies.baselines import ANY


@dataclass(frozen=True)
class OneMethod:
    """The runs of one method, over seeds and folds."""

    name: str
    kind: str                                   # ranking, classification, untrained or unknown
    members: tuple[Member, ...]

    def by_seed(self, value: Callable[[Member], float | None]) -> dict[int, float]:
        """Seed -> mean over its folds of a value of a run; a run without one (None) is left out."""
        found: dict[int, list[float]] = {}
        for member in self.members:
            if (own := value(member)) is not None:
                found.setdefault(member.seed, []).append(own)
        return {seed: float(np.mean(own)) for seed, own in found.items()}

    def interval(self, value: Callable[[Member], float | None]) -> Interval | None:
        """Mean over seeds with its interval; None without a value."""
        values = list(self.by_seed(value).values())
        return mean_interval(values) if values else None


def methods_of(gathered: Gathered) -> list[OneMethod]:
    """The tested runs by method: by the axes of their study, or by loss. Runs that would be one method with the same
    seed and fold are told apart by their hash."""
    if not gathered.tested:
        raise NearkinError(f"{gathered.name}: none of its {len(gathered.members)} runs is tested; nothing to look at")
    found: dict[str, dict[str, Member]] = {}
    for member in gathered.tested:
        words = [label_of(member, key) for key in gathered.axes or ("loss",)]
        name = ", ".join(word for word in words if word != ANY) or ANY
        found.setdefault(name, {})[member.run.hash] = member        # a run may stand in several cells
    methods = []
    for name, own in found.items():
        members = tuple(own.values())
        if len({(m.seed, m.fold) for m in members}) < len(members):
            methods += [OneMethod(f"{name} {m.run.hash[:6]}", kind_of(m), (m,)) for m in members]
        else:
            methods.append(OneMethod(name, kind_of(members[0]), members))
    return methods


def stored(analysis: type[Analysis], run: Run, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The summary in NAME.json of a run, if it is of this version and these options; else None."""
    try:
        content = json.loads((run.path / analysis.folder / f"{analysis.name}.json").read_text())
    except (OSError, ValueError):
        return None
    fits = content.pop("version", None) == analysis.version
    return content if content.pop("options", None) == json.loads(json.dumps(options)) and fits else None


def stored_arrays(analysis: type[Analysis], run: Run) -> dict[str, np.ndarray] | None:
    """The arrays in NAME.npz of a run; None where it cannot be read."""
    try:
        with np.load(run.path / analysis.folder / f"{analysis.name}.npz") as held:
            return dict(held)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def found_in(analysis: type[Analysis], gathered: Gathered, **options: Any) -> dict[str, Any]:
    """Run's hash -> what an analysis finds in each tested run; what was not stored yet is stored."""
    runs = {member.run.hash: member.run for member in gathered.tested}
    found = {}
    for name, run in track(runs.items(), analysis.name.capitalize(), len(runs)):
        found[name] = analysis.of(run, **options)
        if stored(analysis, run, options) is None:
            found[name].save(run.path / analysis.folder)
    return found
