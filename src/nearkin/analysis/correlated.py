"""Do numbers of the embedding space go with the test? Rank correlations over methods, all of them one family.

The unit is the method, with one value on either side: its mean over the seeds and folds that all methods have. No
verdict below three seeds, nor with fewer methods than could reject anything after Holm's correction.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nearkin.comparison.pages import Sheet
from nearkin.comparison.verdicts import FEW
from nearkin.statistics.correlation import least_methods, rank_correlation
from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.paired import holm
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Row, common

LEAST = 3  # methods: two always correlate


def correlations(asked: Mapping[tuple[str, str], Sequence[tuple[Row, Row]]]) -> dict[str, dict[str, Any]]:
    """What is correlated -> with what -> the correlation, its p value after Holm's correction, and a verdict.

    Parameters:
        asked: which two numbers -> the two rows of every method; those of fewer than 3 methods are left out.
    """
    cells = {names: correlation(rows) for names, rows in asked.items() if len(rows) >= LEAST}
    needed = least_methods(len(cells))
    tested = [
        cell
        for cell in cells.values()
        if cell["p"] is not None and cell["seeds"] >= LEAST_SEEDS and cell["methods"] >= needed
    ]
    for cell, p in zip(tested, holm([cell["p"] for cell in tested]).tolist(), strict=True):
        cell["p_holm"] = p
    by_name: dict[str, dict[str, Any]] = {}
    for (first, second), cell in cells.items():
        by_name.setdefault(first, {})[second] = cell | {"family": len(tested), "verdict": _verdict(cell, needed)}
    return by_name


def correlation(rows: Sequence[tuple[Row, Row]]) -> dict[str, Any]:
    """Spearman's correlation over methods of their means on the seeds and folds that all of them have."""
    shared = common([row for pair in rows for row in pair])
    cell: dict[str, Any] = {"spearman": None, "p": None, "p_holm": None, "methods": len(rows), "seeds": 0, "why": None}
    if isinstance(shared, Nothing):
        return cell | {"why": shared.reason}
    means = shared.values.mean(axis=1)  # (2M,)
    value = rank_correlation(means[::2], means[1::2])
    if value is None:
        return cell | {"seeds": len(shared.seeds), "why": "one of the two is the same for all methods"}
    return cell | {"spearman": value.value, "p": value.p, "seeds": len(shared.seeds)}


def _verdict(cell: Mapping[str, Any], needed: int) -> str:
    if cell["why"]:
        return cell["why"]
    if cell["seeds"] < LEAST_SEEDS:
        return f"no verdict: {cell['seeds']} common seed{'s' * (cell['seeds'] > 1)}, {FEW}"
    if cell["methods"] < needed:
        return f"no verdict: {cell['methods']} methods, at least {needed} are needed"
    if cell["p_holm"] >= ALPHA:
        return "undecided"
    return "rises with it" if cell["spearman"] > 0 else "falls with it"


def correlation_sheet(correlated: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """The table of the family."""
    cells = [(of, other, cell) for of, others in correlated.items() for other, cell in others.items()]
    rows = [
        [
            of,
            other,
            cell["verdict"],
            str(cell["methods"]),
            str(cell["seeds"]),
            _number(cell["spearman"]),
            _p(cell["p_holm"]),
        ]
        for of, other, cell in cells
    ]
    family = cells[0][2]["family"]
    notes = [
        "Spearman's correlation over the trained methods of this table, no random sample of methods; a method counts "
        "once, by its mean over the seeds and folds that all methods have"
    ]
    if family:
        notes.append(
            f"one family of {family} test{'s' * (family > 1)}: p is that of the permutation test over "
            "methods, after Holm's correction"
        )
    return Sheet("With the test", ["of", "with", "verdict", "methods", "seeds", "Spearman", "p (Holm)"], rows, 4, notes)


def _p(value: float | None) -> str:
    return "< 0.001" if value is not None and value < 0.001 else _number(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
