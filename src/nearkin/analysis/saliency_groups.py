"""The runs of a study as methods: runs that differ in seed and fold alone belong together."""

from dataclasses import dataclass

from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import kind_of
from nearkin.studies.baselines import ANY

KINDS = ("ranking", "classification", "unknown", "untrained")


@dataclass(frozen=True)
class Group:
    """A method: its name, its kind (ranking, classification, untrained), and its runs, one per seed."""

    name: str
    kind: str
    members: list[Member]


def groups_of(gathered: Gathered) -> list[Group]:
    """The methods of tested runs, ranking losses first, untrained networks last; of several folds the first. What has a
    random head and was never trained is called None, as in Kobs et al. 2021."""
    found: dict[str, list[Member]] = {}
    for member in gathered.tested:
        found.setdefault(_name(member), []).append(member)
    groups = []
    for name, members in found.items():
        fold = min((m.fold for m in members if m.fold is not None), default=None)
        members = sorted((m for m in members if m.fold == fold), key=lambda m: m.seed)
        unique = list({m.run.hash: m for m in members}.values())
        if len({m.seed for m in unique}) == len(unique):
            groups.append(Group(name, kind_of(unique[0]), unique))
        else:                                                       # the same loss and seed with other settings
            groups += [Group(f"{name} {m.run.hash[:6]}", kind_of(m), [m]) for m in unique]
    return sorted(groups, key=lambda group: KINDS.index(group.kind))


def _name(member: Member) -> str:
    baseline = member.baseline
    if baseline is None and member.untrained:
        baseline = {"linear": "random_head", "none": "pooled"}.get(member.settings["model.head"])
    beside = [label for label in member.labels.values() if label not in (ANY, baseline)]
    if baseline is not None:
        return ", ".join([{"random_head": "None"}.get(baseline, baseline), *beside])
    return ", ".join(beside) or member.settings["loss.name"]
