"""Every claim in its source's own tables: our code against results that were computed without it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import EPOCH
from nearkin.literature._comparisons import KINDS
from nearkin.literature.claims import Checked, check_source, claim, claims
from nearkin.literature.decisions import NAMES
from nearkin.registry import DATASETS, LOSSES, METRICS

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text())["claims"]
HOLDS = {True: True, False: False, "cannot be checked": None}


def test_all_are_there():
    assert [each.id for each in claims()] == list(EXPECTED)
    assert len(claims()) == 44
    assert {each.source for each in claims("drml2021")} == {"drml2021"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_claim_holds_in_its_source_or_not(name):
    found, listed = check_source(claim(name)), EXPECTED[name]
    assert found.holds is HOLDS[listed["holds_in_source"]]
    counts = listed["counts"] or {"comparisons": 0, "hold": 0, "unreadable": 0}
    assert {key: getattr(found, key) for key in counts} == counts
    if listed["measured"] is None:
        assert found.measured is None
    else:
        assert found.measured == pytest.approx(listed["measured"], abs=5e-4)  # the list is rounded to three decimals


def with_check(left, op, right, **more):
    return replace(claims()[0], check={"left": left, "op": op, "right": right, "unit": "points", **more})


def test_what_cannot_be_read_leaves_a_claim_open_unless_the_rest_settles_it():
    lost = {"table": "roth_t3", "method": "Rank", "column": "R@1"}
    good, bad = ({"table": "roth_t3", "method": m, "column": "R@1"} for m in ("Margin", "DVML"))
    assert check_source(with_check([lost, good], ">", 75)) == Checked(None, 78.4, 2, 1, 1)
    assert check_source(with_check([lost, bad], ">", 75)) == Checked(False, 70.2, 2, 0, 1)
    assert check_source(with_check([lost, good], ">", 75, need="any")).holds is True
    assert check_source(with_check([lost, bad], ">", 75, need="any")).holds is None


def test_decimals_do_not_decide():
    both = [{"table": name, "method": "MultiSimilarity", "column": "R@1"} for name in ("thesis_t16", "thesis_t7c")]
    difference = {"fn": "minus", "of": both}
    assert 65.61 - 65.24 > 0.37  # in binary
    assert check_source(with_check(difference, ">", 0.37)) == Checked(False, 0.37, 1, 0, 0)


def test_unknown_names():
    with pytest.raises(NearkinError, match="did you mean psomas2020"):
        claims("psomas2021")
    with pytest.raises(NearkinError, match="unknown claim 'psomas_npair_first'"):
        claim("psomas_npair_first")


def names_in(condition):
    """Every loss that a condition names."""
    found = []
    for key in ("methods", "left", "right", "among", "order", "method"):
        value = condition.get(key, [])
        for each in value if isinstance(value, list) else [value]:
            found += [each] if isinstance(each, str) else [each["loss.name"]] if "loss.name" in each else []
    return found


@pytest.mark.parametrize("each", claims(), ids=lambda each: each.id)
def test_what_a_study_of_ones_own_needs_is_written_for_code(each):
    """In names that nearkin knows; or there is a sentence why not."""
    assert set(each.data) <= NAMES.keys()
    assert set(NAMES.values()) <= set(DATASETS.names())
    if each.in_study is None:
        assert each.study_needs
        return
    assert each.twin is not None
    for condition in each.in_study["conditions"]:
        assert condition["kind"] in KINDS
        assert set(names_in(condition)) <= set(LOSSES.names())
        for metric in condition.get("metric", condition.get("of", [])):
            assert metric.removeprefix("train.").removeprefix(EPOCH).partition("@")[0] in METRICS.names()


def test_losses_of_the_twin_are_those_of_the_conditions():
    for each in claims():
        if each.in_study is not None:
            named = {name for condition in each.in_study["conditions"] for name in names_in(condition)}
            assert named == set(each.twin["methods"]), each.id
