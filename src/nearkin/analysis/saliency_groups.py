"""The methods of a study as saliency maps compare them: those of one fold, ranking losses first."""

from dataclasses import dataclass

from nearkin.analysis.over_runs import methods_of, one_fold
from nearkin.comparison.gather import Gathered, Member

KINDS = ("ranking", "classification", "own", "untrained")


@dataclass(frozen=True)
class Group:
    """A method: its name, its kind (ranking, classification, untrained), and its runs, one per seed."""

    name: str
    kind: str
    members: list[Member]


def groups_of(gathered: Gathered) -> list[Group]:
    """The methods of tested runs, ranking losses first, untrained networks last; of several folds one."""
    groups = [
        Group(method.name, method.kind, sorted(method.members, key=lambda member: member.seed))
        for method in one_fold(methods_of(gathered))
    ]
    return sorted(groups, key=lambda group: KINDS.index(group.kind))
