"""What the sources say in words, checked against their own tables.

A claim's `check` is an expression over the tables (its language is explained at the head of `data/claims.json`): left
and right become lists of numbers, and `op` must hold for every pair.
"""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from typing import Any

from nearkin.errors import NearkinError, choices
from nearkin.literature.table import Cell, PublishedTable
from nearkin.literature.tables import table

Values = list[float | None]
AXES = ("method", "table", "part", "where", "column")  # the order in which lists expand
REDUCE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda x: sum(x) / len(x),
    "max": max,
    "min": min,
    "range": lambda x: max(x) - min(x),
}
OPS: dict[str, Callable[[float, float], bool]] = {">": operator.gt, "<": operator.lt, "==": operator.eq}


@dataclass(frozen=True)
class Claim:
    """What a source says about its results, and how that is checked: in its tables, and in the user's study."""

    id: str
    source: str
    where: str  # section or table of the source
    claim: str  # what it says
    kind: str  # order, difference, ablation, share, correlation
    data: tuple[str, ...]
    check: dict[str, Any] | None  # None: the source has only a figure
    threshold: str  # "source": the bound is the source's; "ours": our reading of a word
    stated_in_source: bool  # False: its words stand in the main paper
    twin: dict[str, Any] | None  # what the user's study must contain, in words
    note: str
    in_study: dict[str, Any] | None  # the same for code (decisions.py)
    study_needs: str = ""  # without one: what it would take

    @property
    def metrics(self) -> list[str]:
        """The metrics that the claim needs in the user's study."""
        conditions = self.in_study["conditions"] if self.in_study else []
        return [metric for condition in conditions for metric in condition.get("metric", condition.get("of"))]


@dataclass(frozen=True)
class Checked:
    """A claim checked in the tables of its source."""

    holds: bool | None  # None: cannot be checked
    measured: float | None  # the value or difference that is nearest to failing, or fails most
    comparisons: int = 0
    hold: int = 0  # of them
    unreadable: int = 0  # of them


@lru_cache(maxsize=1)
def _claims() -> dict[str, Claim]:
    content = json.loads((files("nearkin.literature") / "data" / "claims.json").read_text(encoding="utf-8"))
    return {raw["id"]: Claim(**{**raw, "data": tuple(raw["data"])}) for raw in content["claims"]}


def claims(source: str | None = None) -> list[Claim]:
    """All claims, or those of one source, as psomas2020."""
    known = {claim.source for claim in _claims().values()}
    if source is not None and source not in known:
        raise NearkinError(f"no claims of {source!r}: {choices(source, known)}")
    return [claim for claim in _claims().values() if source in (None, claim.source)]


def claim(name: str) -> Claim:
    """The claim of this id."""
    if name not in _claims():
        raise NearkinError(f"unknown claim {name!r}: {choices(name, _claims())}")
    return _claims()[name]


def check_source(claim: Claim) -> Checked:
    """Does a claim hold in the tables of its source? One comparison that fails settles it; one that cannot be read
    leaves it open, unless it is settled."""
    if claim.check is None:
        return Checked(None, None)
    left, op, bound = _values(claim.check["left"]), claim.check["op"], claim.check["right"]
    any_will_do = claim.check.get("need") == "any"
    if op == "between":
        pairs = _paired(left, [0.0])
        outcomes = [None if x is None else bound[0] <= x <= bound[1] for x in left]
    else:
        pairs = _paired(left, _values(bound))
        outcomes = [None if x is None or y is None else OPS[op](x, y) for x, y in pairs]
    read = [(x, y) for x, y in pairs if x is not None and y is not None]
    single = op == "between" or not isinstance(bound, list | dict)  # one number on the right: the left value is shown
    shown_values = [x if single else _exact(x - y) for x, y in read]
    highest = (op == "<") != any_will_do
    measured = (
        None
        if not shown_values
        else max(shown_values, key=abs)
        if op == "=="
        else (max if highest else min)(shown_values)
    )
    settled, open_ = any(outcomes) if any_will_do else False not in outcomes, None in outcomes
    holds: bool | None = settled if settled == any_will_do or not open_ else None
    return Checked(holds, measured, len(outcomes), outcomes.count(True), outcomes.count(None))


def _exact(value: float) -> float:
    """Without the noise of binary fractions: 65.61 - 65.24 is 0.37. Tables have at most two decimals."""
    return round(value, 9)


def _paired(left: Values, right: Values) -> list[tuple[float | None, float | None]]:
    """In pairs; a single value is paired with every one of the others."""
    n = max(len(left), len(right))
    wide = [side * n if len(side) == 1 else side for side in (left, right)]
    return list(zip(*wide, strict=True))


def _values(expression: Any) -> Values:
    """The values of an expression."""
    if isinstance(expression, list):
        return [value for part in expression for value in _values(part)]
    if not isinstance(expression, Mapping):
        return [float(expression)]
    if "of" in expression:
        sides = [_values(part) for part in expression["of"]]
        if expression["fn"] == "minus":
            return [None if x is None or y is None else _exact(x - y) for x, y in _paired(*sides)]
        return [_reduced(expression["fn"], [value for side in sides for value in side])]
    return _cells(expression)


def _cells(reference: Mapping[str, Any]) -> Values:
    """One cell, or all that its lists select; with `fn` the axes in `over` are reduced to one number."""
    fn = reference.get("fn")
    reduced = [] if fn in (None, "rank") else _list(reference.get("over", "method"))
    axes = {axis: _list(reference.get(axis)) for axis in AXES} | {"where": _cases(reference.get("where"))}
    if axes["column"] == ["*"]:  # tables that expand together are alike
        axes["column"] = [column.name for column in table(axes["table"][0]).columns]
    outer_axes = [axis for axis in AXES if axis not in reduced]
    values: Values = []
    for outer in product(*(axes[axis] for axis in outer_axes)):
        at = axes | {axis: [value] for axis, value in zip(outer_axes, outer, strict=True)}
        current = table(at["table"][0])
        if at["method"] == ["*"]:
            at["method"] = [name for name in current.methods if name not in reference.get("except", [])]
        read = _rank if fn == "rank" else PublishedTable.value
        cells = [read(current, method, column, part, where) for method, _, part, where, column in product(*at.values())]
        values += [_reduced(fn, cells)] if reduced else cells
    return values


def _rank(
    published: PublishedTable, method: str, column: str, part: str | None = None, where: Mapping[str, Any] | None = None
) -> float | None:
    """1 + the number of rows above it."""
    place, value = published.find(column, part), published.value(method, column, part, where)
    if value is None:
        return None
    return 1.0 + sum(isinstance(cell := row.cells[place], Cell) and cell.mean > value for row in published.rows)


def _reduced(fn: Any, values: Values) -> float | None:
    """Over what can be read."""
    read = [value for value in values if value is not None]
    return REDUCE[fn](read) if read else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _cases(where: Mapping[str, Any] | None) -> list[dict[str, Any] | None]:
    """{"dim": [64, 128]} as [{"dim": 64}, {"dim": 128}]."""
    if where is None:
        return [None]
    return [dict(zip(where, values, strict=True)) for values in product(*map(_list, where.values()))]
