"""From gathered runs to rows: which runs are one row, what stands beside the rows, and the values of each."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nearkin.comparison.gather import Gathered, Member, label_of
from nearkin.comparison.method import Method, kind_of
from nearkin.config.spec import ALIASES, UNHASHED
from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.unit import Key, Place, Row
from nearkin.studies.baselines import ANY, is_fitted
from nearkin.studies.joined import stored_joined

NETWORK = ("model.backbone", "model.dim")  # what tells settings of single runs apart
REPEATS = {"train.seed", "protocol.fold", "data.cache", "purpose"}
SHORT = {full: word for word, full in ALIASES.items()}


def beside(gathered: Gathered, members: Sequence[Member], by: Sequence[str]) -> tuple[str, ...]:
    """What tells settings beside the rows apart: the other axes of a study; of single runs network and size, where they
    differ."""
    if gathered.axes:
        return tuple(axis for axis in gathered.axes if axis not in by)
    trained = [member for member in members if member.baseline is None]
    return tuple(
        key
        for key in NETWORK
        if key not in by and SHORT.get(key, key) not in by and len({str(m.settings[key]) for m in trained}) > 1
    )


def methods_of(
    gathered: Gathered,
    members: Sequence[Member],
    by: Sequence[str],
    metric: str,
    *,
    reading: str = "chosen",
    evaluation: str = "separated",
) -> list[Method]:
    """The rows of a comparison by one metric, in the order in which their runs came; those without a value too.

    Parameters:
        gathered: the stored runs.
        members: those of them that are compared: of one data set.
        by: what rows are: axes of the study, or settings.
        metric: a test metric, train.NAME or `validation NAME`.
        reading: which epoch (studies/readings.py).
        evaluation: of folds: separated, or concatenated.
    """
    keys = beside(gathered, members, by)
    methods = []

    def setting(member: Member) -> tuple[str, ...]:
        return tuple(label_of(member, key) for key in keys)

    for name, runs in named(members, by, keys).items():
        row = row_of(name, runs, metric, reading=reading, setting=setting)
        if evaluation == "concatenated":
            row = joined_row(name, runs, metric, gathered, setting)
        validation = row_of(name, runs, f"validation {gathered.select}", setting=setting)
        bounds = metric_of(metric).bounds
        methods.append(Method(kind_of(runs[0]), row, runs, validation if validation.members else None, bounds))
    return _spread(methods)


def named(members: Iterable[Member], by: Sequence[str], keys: Sequence[str] = ()) -> dict[str, list[Member]]:
    """Members by the name of their row. Runs that differ in a setting that is neither among `by` nor beside the rows
    are not repetitions of one another: they are rows of their own, named by that setting. Runs of the same seed, fold
    and settings (of two versions of a part) are told apart by their hash."""
    labelled: dict[str, list[Member]] = {}
    for member in members:
        words = [label_of(member, key) for key in by]
        labelled.setdefault(", ".join(word for word in words if word != ANY) or ANY, []).append(member)
    rows: dict[str, list[Member]] = {}
    for label, alike in labelled.items():
        apart = _apart(alike, [*by, *keys])
        for member in alike:
            words = [f"{SHORT.get(key, key)} {_settings(member)[key]}" for key in apart]
            rows.setdefault(", ".join([label, *words]), []).append(member)
    return {name: runs for row, alike in rows.items() for name, runs in _by_hash(row, alike, keys).items()}


def _by_hash(name: str, members: list[Member], keys: Sequence[str]) -> dict[str, list[Member]]:
    """A row whose runs are all of different seeds, folds and settings as it is; else one row per run."""
    places: dict[tuple[Any, ...], set[str]] = {}
    for member in members:
        place = (member.seed, member.fold, *(label_of(member, key) for key in keys))
        places.setdefault(place, set()).add(member.run.hash)  # a run may stand in several cells
    if all(len(hashes) == 1 for hashes in places.values()):
        return {name: members}
    return {f"{name}, run {member.run.hash[:6]}": [member] for member in members}


def row_of(
    name: str,
    members: Iterable[Member],
    metric: str,
    *,
    reading: str = "chosen",
    setting: Callable[[Member], tuple[str, ...]] = lambda member: (),
    value: Callable[[Member], float | None] | None = None,
) -> Row:
    """The values of some runs as a row: a metric, or any other value of a run; runs without one are left out."""
    runs = {Key(member.seed, Place(setting(member), member.fold)): member for member in members if member.done}
    of = value or (lambda member: member.value(metric, reading))
    values = {key: number for key, member in runs.items() if (number := of(member)) is not None}
    plain = value is None and reading == "chosen" and not metric.startswith(("train.", "validation "))
    if not plain or metric_of(metric).kind != "query":
        return Row(name, values)
    queries = next(iter(runs.values())).queries if runs else None
    return Row(name, values, queries, lambda key: runs[key].by_class(metric))


def _apart(members: Sequence[Member], named: Sequence[str]) -> list[str]:
    """The settings in which members with the same words on `named` differ."""
    free = REPEATS | UNHASHED | {ALIASES.get(key, key) for key in named}
    groups: dict[tuple[str, ...], list[Member]] = {}
    for member in members:
        groups.setdefault(tuple(label_of(member, key) for key in named), []).append(member)
    apart: dict[str, None] = {}
    for alike in groups.values():
        if len(alike) == 1:
            continue
        relevant, settings = _relevant(alike), [_settings(member) for member in alike]
        shared = set.intersection(*map(set, settings))  # a field may be younger than a run
        apart |= {
            key: None
            for key in settings[0]
            if key in shared - free and relevant(key) and len({repr(one[key]) for one in settings}) > 1
        }
    return list(apart)


def _settings(member: Member) -> dict[str, Any]:
    """Its settings, and the name of every part that it has not: without a miner, miner.name is none."""
    absent = [key for key, value in member.settings.items() if value is None and "." not in key]
    return member.settings | {f"{key}.name": "none" for key in absent}


def _relevant(members: Sequence[Member]) -> Callable[[str], bool]:
    """Does a setting matter to these runs? To untrained networks only data, protocol and network do."""
    if all(member.untrained for member in members):
        return lambda key: key.startswith(("data.", "protocol.", "model.")) and key != "model.dim"
    return lambda key: True


def joined_row(
    name: str,
    members: Sequence[Member],
    metric: str,
    gathered: Gathered,
    setting: Callable[[Member], tuple[str, ...]] = lambda member: (),
) -> Row:
    """Folds whose embeddings are joined: one value per seed and setting that has all folds of the row, as far as it is
    stored. Which folds were joined is a part of the setting: more of them make a longer vector."""
    values = {}
    for group in with_all_folds(members):
        value = stored_joined([member.run for member in group], gathered.joined).get(metric)
        if value is not None:
            folds = ", ".join(str(member.fold) for member in group)
            values[Key(group[0].seed, Place((*setting(group[0]), f"folds {folds}")))] = value
    return Row(name, values, members[0].queries if metric_of(metric).kind == "query" else None)


def with_all_folds(members: Iterable[Member]) -> list[list[Member]]:
    """Runs of a study that differ in their fold alone, sorted by it; those that lack a fold are left out."""
    groups: dict[tuple[Any, ...], list[Member]] = {}
    folds: dict[tuple[Any, ...], set[int | None]] = {}
    for member in members:
        place = (member.head["data_hash"], *member.labels.values())
        folds.setdefault(place, set()).add(member.fold)
        groups.setdefault((*place, member.seed), []).append(member)
    return [
        sorted(group, key=lambda member: str(member.fold))
        for (*place, _), group in groups.items()
        if len(group) > 1 and {member.fold for member in group} == folds[tuple(place)]
    ]


def _spread(methods: list[Method]) -> list[Method]:
    """An untrained network that is the same whatever stands on an axis, and in every fold, takes part everywhere."""
    places = list(dict.fromkeys(p for method in methods if method.trained for p in method.row.places)) or [Place()]
    for method in methods:
        if method.trained or not method.row.members:
            continue
        heads = [(str(m.settings["model.head"]), str(m.settings.get("model.init"))) for m in method.members]
        fitted = any(is_fitted(head, init) for head, init in heads)
        sources: dict[Key, Key] = {}  # where it takes part -> which run it is
        for key in method.row.members:
            fits = [place for place in places if _fits(key.place, place, fitted)]
            sources |= {Key(key.seed, place): key for place in fits or ([] if fitted else places)}
        if not sources:
            continue
        row = method.row

        def by_class(key: Key, row: Row = row, sources: dict[Key, Key] = sources):
            return row.by_class(sources[key])

        values = {key: row.members[source] for key, source in sources.items()}
        method.row = Row(row.name, values, row.queries, by_class)
    return methods


def _fits(network: Place, place: Place, fitted: bool) -> bool:
    """Is an untrained network that was run at one place the same at another?"""
    alike = all(a in (b, ANY) for a, b in zip(network.setting, place.setting, strict=True))
    return alike and (not fitted or network.fold == place.fold)
