"""`nearkin runs verify`: which files of stored runs are missing, truncated or altered."""

import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.consent import import_paths
from nearkin.errors import NearkinError
from nearkin.runs.run import Run
from nearkin.runs.sums import Sum, sum_of
from nearkin.storage import UNREADABLE
from nearkin.units import counted

LOOKS = 3  # before a difference is called damage
SMALL = 1 << 20  # bytes; smaller files are read even if not `deep`


@dataclass(frozen=True)
class Verified:
    """The result of verifying the files of a run.

    Parameters:
        run: the run.
        listed: does it have checksums?
        problems: what is wrong, in words.
        notes: what could not be verified, in words.
    """

    run: Run
    listed: bool
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def summary(looked_at: Sequence[Verified], *, deep: bool = False) -> list[str]:
    """What is wrong with which runs, and how many are as they were stored, one line each.

    Parameters:
        looked_at: what `verify` gave for every run.
        deep: were large files read too?
    """
    lines = [
        f"{one.run.hash}  {line}"
        for one in looked_at
        for line in (*(f"damaged: {problem}" for problem in one.problems), *one.notes)
    ]
    good = [one for one in looked_at if not one.problems]
    bare = sum(not one.listed for one in good)
    how = "every byte" if deep else "small files by content, large ones by size; deep=True reads them too"
    counts = f"{len(good) - bare} as stored ({how}), {bare} without checksums, {len(looked_at) - len(good)} damaged"
    return [*lines, f"{counted(len(looked_at), 'run')}: {counts}"]


def verify(run: Run, *, deep: bool = False) -> Verified:
    """Compare the files of a run with files.json; nothing is written, and nothing that its spec names is imported.

    Parameters:
        run: the run.
        deep: read the large files too; otherwise they are compared by their size.
    """
    for look in range(LOOKS):
        folder = _identity(run)
        try:
            verified = _verified(Run(run.path), deep)
        except (NearkinError, OSError) as error:
            verified = Verified(run, True, [_without_name(run, error)])
        if folder is None or _identity(run) != folder:  # removed, or trained again, meanwhile
            verified = Verified(run, True, [], ["it was removed while it was being verified"])
        if not verified.problems:
            break
        if look + 1 < LOOKS:  # a process may just be writing it
            time.sleep(0.05)
    return verified


def _identity(run: Run) -> int | None:
    """The inode of its folder; None if there is none."""
    try:
        return run.path.stat().st_ino
    except OSError:
        return None


def _verified(run: Run, deep: bool) -> Verified:
    try:
        sums = run.sums()
    except NearkinError as error:
        return Verified(run, True, [_without_name(run, error)])
    if sums is None:
        return _without_sums(run, deep)
    names = sorted({*sums.files, *sums.coming})
    problems = [f"{name} {why}" for name in names if (why := _problem(run.path / name, sums.of(name), deep))]
    if not problems and (damage := run.damage()) is not None:
        problems.append(damage.removeprefix(f"run {run.hash} is damaged: "))
    problems += _parts(run, deep)
    marks = [name for name in ("final.json", "result.json") if (run.path / name).exists() and not sums.of(name)]
    notes = [
        f"{name} is not listed, because of a kill in between; the same training command lists it" for name in marks
    ]
    return Verified(run, True, problems, notes)


def _problem(path: Path, right: tuple[Sum, ...], deep: bool) -> str | None:
    try:
        size = path.stat().st_size
        if not path.is_file():
            return "is not a file"
        if size not in [entry.bytes for entry in right]:
            shorter = size < right[0].bytes
            return f"is {'truncated' if shorter else 'altered'}: {size} bytes instead of {right[0].bytes}"
        if (deep or size <= SMALL) and sum_of(path) not in right:
            return "is altered: its SHA-256 differs"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({type(error).__name__})"
    return None


def _without_sums(run: Run, deep: bool) -> Verified:
    """A run that was stored without checksums: what can be verified nevertheless."""
    damage = run.damage()
    problems = [damage.removeprefix(f"run {run.hash} is damaged: ")] if damage is not None else []
    notes = [] if problems else [unverified(run)]
    return Verified(run, False, problems + _parts(run, deep), notes)


def _parts(run: Run, deep: bool) -> list[str]:
    """Files that are not listed and have a part whose CRC-32 does not match."""
    sums = run.sums()
    problems = []
    for file in sorted([*run.path.glob("*.pt"), *run.path.glob("*.npz")]) if deep else ():
        if sums is not None and sums.of(file.name):
            continue
        try:
            with zipfile.ZipFile(file) as parts:
                if (name := parts.testzip()) is not None:
                    problems.append(f"{file.name} is altered: the CRC-32 of {name} differs")
        except UNREADABLE as error:
            problems.append(f"{file.name} cannot be read ({type(error).__name__})")
    return problems


def unverified(run: Run) -> str:
    """In words, what is known about a readable run without checksums."""
    fits = fits_name(run)
    edited = "; its settings do not match its name: they were edited, or their meaning has changed"
    more = {True: "; its settings match its name", False: edited, None: ""}[fits]
    return f"unverified: it has no checksums (files.json){more}"


def fits_name(run: Run) -> bool | None:
    """Is the hash of its stored spec its name? None if that cannot be decided: a part from outside would have to be
    imported, or the file of its weights is gone."""
    from nearkin.config.spec import completed, stored_spec
    from nearkin.data import transforms
    from nearkin.engine import loop

    head = run.head()
    if import_paths({part: head["spec"].get(part) for part in head["spec"] if part not in ("data", "recipe")}):
        return None
    weights = (head["spec"].get("model") or {}).get("weights")
    if weights not in (None, "imagenet") and not Path(str(weights)).expanduser().is_file():
        return None
    try:
        spec = stored_spec(completed(head["spec"]))
        versions = {"loop": loop.VERSION, "transforms": transforms.VERSION}
        data, split = head["data_hash"], head["split_hash"]
        names = {spec.hash(data, split, former=former, **versions) for former in (False, True)}
    except (NearkinError, KeyError, TypeError, AttributeError):
        return None
    return run.hash in names


def _without_name(run: Run, error: Exception) -> str:
    return str(error).removeprefix(f"run {run.hash} is damaged: ")
