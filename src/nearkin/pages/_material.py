"""What all sections read: the stored runs, and the comparisons that are made of them. Nothing is computed that needs
embeddings, and no test label is opened."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nearkin.comparison.compare import DATA_KEYS, canonical_metric, compare
from nearkin.comparison.gather import Gathered, Member
from nearkin.pages._base import slug
from nearkin.pages._board import Board
from nearkin.pages._members import check_stored, data_name

METHOD_AXES = ("loss", "method", "loss.name", "method.name")


@dataclass
class Material:
    """Stored runs, and what is asked of them.

    Parameters:
        gathered: the stored runs.
        metric: what the page is about.
        boards: the comparison on each data set; of one run none.
        published: id of a published table that is shown beside.
        command: how the page was made, in words.
        made: the command that made all of the runs; empty: there is none.
    """

    gathered: Gathered
    metric: str
    boards: list[Board] = field(default_factory=list)
    published: str | None = None
    command: str = ""
    made: str = ""

    @property
    def trained(self) -> list[Member]:
        """The tested members that were trained."""
        return [member for member in self.gathered.tested if not member.untrained]


def material(
    gathered: Gathered,
    *,
    metric: str = "map_at_r",
    by: Sequence[str] | None = None,
    published: str | None = None,
    command: str = "",
) -> Material:
    """Compare what was gathered, once for each data set; `by` is what rows are, axes or settings: by default all axes
    of the study, or the loss."""
    metric, tested = canonical_metric(metric), gathered.tested
    if not tested:
        raise gathered.nothing_tested()
    check_stored(gathered, metric)
    keys = list(by) if by else list(gathered.axes) or ["loss"]
    comparisons = compare(gathered, by=_with_data(tested, keys), metric=metric)
    method = [_method_axis(keys)] if len(keys) > 1 and gathered.axes else keys
    ranked = compare(gathered, by=_with_data(tested, method), metric=metric) if method != keys else comparisons
    names = _data_names([c.methods[0].members[0] for c in comparisons])
    suffixes = [f"-{slug(name) or i}" if len(names) > 1 else "" for i, name in enumerate(names)]
    rows = tuple(key for key in keys if key not in DATA_KEYS) or ("loss",)
    boards = [Board(*place, gathered, rows) for place in zip(names, comparisons, ranked, suffixes, strict=True)]
    return Material(gathered, metric, boards, published, command)


def _with_data(members: list[Member], keys: list[str]) -> list[str]:
    several = len({member.head["data_hash"] for member in members}) > 1
    return keys if not several or any(key in DATA_KEYS for key in keys) else ["data", *keys]


def _method_axis(keys: list[str]) -> str:
    candidates = [key for key in keys if key not in DATA_KEYS and key != "base"] or keys
    return next((key for key in candidates if key in METHOD_AXES), candidates[0])


def _data_names(members: list[Member]) -> list[str]:
    """Data sets as headings call them: a folder by its name; equal names with the beginning of their hash."""
    names = [data_name(member) for member in members]
    return [
        name if names.count(name) == 1 else f"{name} {member.head['data_hash'][:6]}"
        for name, member in zip(names, members, strict=True)
    ]
