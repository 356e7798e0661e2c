"""The tournament over the published tables, against the printed one and against ranks that were counted elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest

from nearkin.errors import NearkinError
from nearkin.literature._flags import over_folds
from nearkin.literature._tournament import published_tournament, published_tournament_table
from nearkin.literature.tables import table

CHECKS = json.loads((Path(__file__).parent / "expected.json").read_text())["checks"]


def test_table_11_from_tables_6_to_8():
    recomputed, printed = published_tournament(), table("thesis_t11")
    assert [t.table for t in recomputed.experiments] == [f"{n}{size}" for n in (6, 7, 8) for size in "abcd"]
    for row in CHECKS["tournament_recomputed"]["rows"]:
        sums = recomputed.sums[row["method"]]
        assert recomputed.ranks[row["method"]] == row["ranks"]
        assert sums["total"] == row["total"] == printed.value(row["method"], "total")
        np.testing.assert_allclose(sums["average"], row["average"], atol=5e-5)  # the list has four decimals
        np.testing.assert_allclose(sums["std"], row["std_sample"], atol=5e-5)


def test_the_average_of_triplet_is_corrected():
    assert round(published_tournament().sums["Triplet"]["average"], 2) == 8.58
    table = published_tournament_table()
    titles = [column.title for column in table.shown]
    (triplet,) = [dict(zip(titles, line, strict=True)) for line in table.texts() if line[0] == "Triplet"]
    assert triplet["average"] == "8.58"
    assert triplet["printed average"] == "8.85*"
    assert any("8.58" in note for note in table.notes)


def test_cars196_counted_by_hand():
    recomputed = published_tournament("cars196")
    assert [t.table for t in recomputed.experiments] == [f"{n}{size}" for n in (9, 20, 21) for size in "abcd"]
    for method in recomputed.ranks:
        scores = [t.value(method, "R@1") for t in recomputed.experiments]
        others = [[t.value(other, "R@1") for other in t.methods] for t in recomputed.experiments]
        ranks = [1 + sum(x > mine for x in row) for mine, row in zip(scores, others, strict=True)]
        assert recomputed.sums[method]["total"] == sum(ranks)
    assert recomputed.printed is None
    assert published_tournament_table("Cars196").rows[0][0] == "ProxyAnchor"


def test_table_12_from_table_13():
    listed, printed = CHECKS["thesis_t12_from_t13"], table("thesis_t12")
    np.testing.assert_allclose(over_folds(table("thesis_t13")), [listed["mean"], listed["std_sample"]], atol=5e-4)
    cell = printed.rows[printed.row("MultiSimilarity")].cells[0]
    assert tuple(cell) == (listed["published"]["mean"], listed["published"]["std"])


def test_a_data_set_without_a_tournament():
    with pytest.raises(NearkinError, match="no published tournament on 'ImageNet'"):
        published_tournament("ImageNet")
