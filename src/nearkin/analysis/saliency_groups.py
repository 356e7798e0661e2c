"""The methods of a study as saliency maps and activations compare them: those of one fold, ranking losses first."""

from dataclasses import dataclass

from nearkin.analysis.over_runs import methods_of
from nearkin.comparison.gather import Gathered, Member

KINDS = ("ranking", "classification", "unknown", "untrained")


@dataclass(frozen=True)
class Group:
    """A method: its name, its kind (ranking, classification, untrained), and its runs, one per seed."""

    name: str
    kind: str
    members: list[Member]


def groups_of(gathered: Gathered) -> list[Group]:
    """The methods of tested runs, ranking losses first, untrained networks last; of several folds the first."""
    groups = []
    for method in methods_of(gathered):
        fold = min((m.fold for m in method.members if m.fold is not None), default=None)
        members = sorted((m for m in method.members if m.fold == fold), key=lambda m: m.seed)
        groups.append(Group(method.name, method.kind, members))
    return sorted(groups, key=lambda group: KINDS.index(group.kind))
