"""From gathered runs to rows: which runs are one row, what stands beside the rows, and the values of each."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import Method, kind_of
from nearkin.config.spec import ALIASES, UNHASHED
from nearkin.evaluation.metrics.base import OF_RUNS, metric_of
from nearkin.statistics.unit import Key, Place, Row
from nearkin.studies.baselines import ANY, is_fitted
from nearkin.studies.joined import stored_joined

NETWORK = ("model.backbone", "model.dim")  # what tells settings of single runs apart
REPEATS = {"train.seed", "protocol.fold", "data.cache", "purpose"}
MATTERS_UNTRAINED = ("data.", "protocol.", "model.")  # rooms of settings that an untrained network depends on
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


def setting_of(member: Member, keys: Iterable[str] = ()) -> tuple[str, ...]:
    """What a run is on these axes, or under these settings."""
    return tuple(member.label(key) for key in keys)


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
    setting, bounds = partial(setting_of, keys=keys), metric_of(metric).bounds
    methods = []
    for name, runs in named(members, by, keys).items():
        if evaluation == "concatenated":
            row = joined_row(name, runs, metric, gathered, setting)
        else:
            row = row_of(name, runs, metric, reading=reading, setting=setting)
        validation = row_of(name, runs, f"validation {gathered.select}", setting=setting)
        methods.append(Method(kind_of(runs[0]), row, runs, validation if validation.members else None, bounds))
    return _spread(methods)


def named(members: Iterable[Member], by: Sequence[str], keys: Sequence[str] = ()) -> dict[str, list[Member]]:
    """Members by the name of their row. Runs that differ in a setting that is neither among `by` nor beside the rows
    are not repetitions of one another: they are rows of their own, named by that setting. Runs of the same seed, fold
    and settings (of two versions of a part) are told apart by their hash."""
    labelled: dict[str, list[Member]] = {}
    for member in members:
        labels = [label for label in setting_of(member, by) if label != ANY]
        labelled.setdefault(", ".join(labels) or ANY, []).append(member)
    rows: dict[str, list[Member]] = {}
    for label, alike in labelled.items():
        apart = _apart(alike, [*by, *keys])
        for member in alike:
            words = [f"{SHORT.get(key, key)} {_settings(member)[key]}" for key in apart]
            rows.setdefault(", ".join([label, *words]), []).append(member)
    return {name: runs for row, alike in rows.items() for name, runs in _by_hash(row, alike, keys).items()}


def _by_hash(name: str, members: list[Member], keys: Sequence[str]) -> dict[str, list[Member]]:
    """A row whose runs are all of different seeds, folds and settings as it is; else one row per run."""
    runs = {((member.seed, member.fold, setting_of(member, keys)), member.run.hash) for member in members}
    if len(dict(runs)) == len(runs):  # one run at every place; it may stand in several cells
        return {name: members}
    return {f"{name}, run {member.run.hash[:6]}": [member] for member in members}


def row_of(
    name: str,
    members: Iterable[Member],
    metric: str,
    *,
    reading: str = "chosen",
    setting: Callable[[Member], tuple[str, ...]] = setting_of,
    value: Callable[[Member], float | None] | None = None,
) -> Row:
    """The values of some runs as a row: a metric, or any other value of a run; runs without one are left out."""
    runs = {Key(member.seed, Place(setting(member), member.fold)): member for member in members if member.done}
    value_of = value or (lambda member: member.value(metric, reading))
    values = {key: number for key, member in runs.items() if (number := value_of(member)) is not None}
    of_test = value is None and reading == "chosen" and not metric.startswith(OF_RUNS)
    if not of_test or metric_of(metric).kind != "query":
        return Row(name, values)
    queries = next(iter(runs.values())).queries if runs else None
    return Row(name, values, queries, lambda key: runs[key].by_class(metric))


def _apart(members: Sequence[Member], keys: Sequence[str]) -> list[str]:
    """The settings in which members with the same labels under `keys` differ. To untrained networks only data, protocol
    and network matter."""
    free = REPEATS | UNHASHED | {ALIASES.get(key, key) for key in keys}
    groups: dict[tuple[str, ...], list[Member]] = {}
    for member in members:
        groups.setdefault(setting_of(member, keys), []).append(member)
    apart: dict[str, None] = {}
    for alike in groups.values():
        settings = [_settings(member) for member in alike]
        shared = set.intersection(*map(set, settings)) - free  # a field may be younger than a run
        if all(member.untrained for member in alike):
            shared = {key for key in shared if key.startswith(MATTERS_UNTRAINED) and key != "model.dim"}
        apart |= {key: None for key in settings[0] if key in shared and len({repr(one[key]) for one in settings}) > 1}
    return list(apart)


def _settings(member: Member) -> dict[str, Any]:
    """Its settings, and the name of every part that it has not: without a miner, miner.name is none."""
    absent = [key for key, value in member.settings.items() if value is None and "." not in key]
    return member.settings | {f"{key}.name": "none" for key in absent}


def joined_row(
    name: str,
    members: Sequence[Member],
    metric: str,
    gathered: Gathered,
    setting: Callable[[Member], tuple[str, ...]] = setting_of,
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
    groups: dict[tuple[Any, ...], dict[int, list[Member]]] = {}  # place on the axes -> seed -> runs
    for member in members:
        seeds = groups.setdefault((member.head["data_hash"], *member.labels.values()), {})
        seeds.setdefault(member.seed, []).append(member)
    whole = []
    for seeds in groups.values():
        folds = {member.fold for runs in seeds.values() for member in runs}
        whole += [runs for runs in seeds.values() if len(runs) > 1 and {member.fold for member in runs} == folds]
    return [sorted(runs, key=lambda member: str(member.fold)) for runs in whole]


def _spread(methods: list[Method]) -> list[Method]:
    """An untrained network that is the same whatever stands on an axis, and in every fold, takes part everywhere."""
    places = list(dict.fromkeys(p for method in methods if method.trained for p in method.row.places)) or [Place()]
    for method in methods:
        if method.trained:
            continue
        heads = [(str(m.settings["model.head"]), str(m.settings.get("model.init"))) for m in method.members]
        fitted = any(is_fitted(head, init) for head, init in heads)
        sources: dict[Key, Key] = {}  # where it takes part -> which run it is
        for key in method.row.members:
            fits = [place for place in places if _fits(key.place, place, fitted)]
            sources |= {Key(key.seed, place): key for place in fits or ([] if fitted else places)}
        if sources:
            method.row = _moved(method.row, sources)
    return methods


def _moved(row: Row, sources: dict[Key, Key]) -> Row:
    """A row whose runs take part elsewhere: where -> which run it is."""
    values = {key: row.members[source] for key, source in sources.items()}
    return Row(row.name, values, row.queries, lambda key: row.by_class(sources[key]))


def _fits(network: Place, place: Place, fitted: bool) -> bool:
    """Is an untrained network that was run at one place the same at another?"""
    alike = all(a in (b, ANY) for a, b in zip(network.setting, place.setting, strict=True))
    return alike and (not fitted or network.fold == place.fold)
