"""Runs that are alike but for one thing: a setting that varies, a regulariser that is switched on."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from nearkin.comparison.gather import Member
from nearkin.comparison.rows import REPEATS, SHORT
from nearkin.config.recipes import without
from nearkin.config.spec import UNHASHED

NONE = "none"  # no regulariser, or one that never acts
NEVER_COUNTS = REPEATS | UNHASHED - {"protocol.path"}  # another file may hold another split


def stored_settings(member: Member) -> Mapping[str, Any]:
    """The settings that a run was stored with; nothing that they name is imported."""
    return member.settings


def regulariser(member: Member) -> str:
    """Its regulariser in words; one that never acts (p_switch=0) is none."""
    name, switch = (member.settings.get(f"regulariser.{key}") for key in ("name", "p_switch"))
    if name is None or switch == 0:
        return NONE
    return str(name) if switch is None else f"{name} p_switch={switch:g}"


def alike(
    members: Iterable[Member],
    free: Callable[[str], bool],
    settings: Callable[[Member], Mapping[str, Any]] = stored_settings,
) -> dict[str, list[Member]]:
    """Groups of runs that differ in nothing but free settings, and in what their recipe adds because of these; by name.

    Two runs agree in a setting when its values are equal, or when they are where what the recipe adds is taken away. A
    run belongs to the first group with whose first run it agrees in all settings. A group has the name that the study
    gives to all of its runs; else to those without a regulariser; else that of loss and miner. Equal names are
    told apart by the settings that differ. An axis on which all runs are the same is in no name.

    Parameters:
        members: the runs.
        free: is the setting of this name free? Seed, fold and what is in no run's name always are.
        settings: of a run, with dotted keys.
    """

    def is_free(key: str) -> bool:
        return key in NEVER_COUNTS or free(key)

    members = list(members)
    labels = {pair: None for member in members for pair in member.labels.items()}
    axes = {axis for axis, count in Counter(axis for axis, _ in labels).items() if count > 1}
    by_name: dict[str, list[list[Member]]] = {}
    for group in _groups(members, is_free, settings):
        by_name.setdefault(_name(group, axes), []).append(group)
    names: dict[str, list[Member]] = {}
    for name, groups in by_name.items():
        differing = _differing([group[0] for group in groups], is_free)
        for group in groups:
            words = ", ".join([name, *(f"{SHORT.get(key, key)} {group[0].settings.get(key)}" for key in differing)])
            while words in names:  # settings that only one of the runs was stored with
                words += " *"
            names[words] = group
    return names


def _groups(
    members: Iterable[Member], is_free: Callable[[str], bool], settings: Callable[[Member], Mapping[str, Any]]
) -> list[list[Member]]:
    sides = []  # a run, its settings as they are, and less what the recipe adds
    for member in members:
        words = settings(member)
        as_they_are = {key: str(value) for key, value in words.items() if not is_free(key)}
        sides.append((member, as_they_are, {key: str(value) for key, value in without(words, is_free).items()}))
    added = sorted({key for _, whole, less in sides for key in less if whole[key] != less[key]})
    buckets: dict[tuple[Any, ...], list[tuple[list[Any], list[Member]]]] = {}  # what no recipe adds -> groups
    for member, whole, less in sides:
        bucket = buckets.setdefault(tuple(sorted(pair for pair in whole.items() if pair[0] not in added)), [])
        values = [{whole.get(key), less.get(key)} for key in added]
        for first, group in bucket:
            if all(map(set.intersection, values, first)):
                group.append(member)
                break
        else:
            bucket.append((values, [member]))
    return [group for bucket in buckets.values() for _, group in bucket]


def _name(group: Sequence[Member], axes: Container[str]) -> str:
    for some in (group, [member for member in group if regulariser(member) == NONE]):
        labels = [[pair for pair in member.labels.items() if pair[0] in axes] for member in some]
        shared = [pair[1] for pair in labels[0] if all(pair in one for one in labels)] if labels else []
        if shared:
            return ", ".join(shared)
    loss, miner = group[0].settings["loss.name"], group[0].settings.get("miner.name")
    return f"{loss} + {miner}" if miner else str(loss)


def _differing(firsts: Sequence[Member], is_free: Callable[[str], bool]) -> list[str]:
    """The settings in which runs differ; none of a single run."""
    keys = dict.fromkeys(key for member in firsts for key in member.settings if not is_free(key))
    return [key for key in keys if len({str(member.settings.get(key)) for member in firsts}) > 1]
