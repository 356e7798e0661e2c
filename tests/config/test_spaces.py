"""The forms of a search space: what lies in them, grids over them, their words, and what people may write."""

import math

import pytest

from nearkin.errors import NearkinError
from nearkin.spaces import Space, parse_space

TENTHS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


class TestValues:
    def test_steps_are_the_numbers_as_written(self):
        assert Space(0, 1, 0.1).values(99) == TENTHS
        assert Space(-0.3, 0.3, 0.1).values(99) == [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
        assert Space(1e-5, 1e-4, 1e-5).values(99) == [i * 1e-5 if i == 1 else float(f"{i}e-5") for i in range(1, 11)]

    def test_evenly_with_both_ends(self):
        assert Space(0, 1).values(5) == [0, 0.25, 0.5, 0.75, 1]
        assert Space(2, 100, 2).values(3) == [2, 50, 100]
        assert Space(1e-6, 1, log=True).values(4) == pytest.approx([1e-6, 1e-4, 1e-2, 1])
        assert Space(1, 9, whole=True).values(5) == [1, 3, 5, 7, 9]
        assert Space(1, 64, log=True, whole=True).values(4) == [1, 4, 16, 64]
        assert Space(options="abcde").values(3) == ["a", "c", "e"]

    def test_at_most_its_own_grid(self):
        assert Space(0, 1, 0.1).values(1000) == TENTHS
        assert Space(1, 3, whole=True).values(9) == Space(1, 3, log=True, whole=True).values(9) == [1, 2, 3]
        assert Space(options=[4, 2]).values(9) == [4, 2]

    @pytest.mark.parametrize(
        "space",
        [
            Space(0.1, 2),
            Space(0, 1, 0.1),
            Space(1e-5, 1e-4, 1e-5),
            Space(1e-6, 1, log=True),
            Space(0.3, 7, log=True),
            Space(5, 50, whole=True),
            Space(2, 100, 2, whole=True),
            Space(3, 500, log=True, whole=True),
            Space(options=[0.1, 1 / 30, "word"]),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
    def test_what_it_gives_it_contains(self, space, n):
        values = space.values(n)
        assert 1 <= len(values) <= n
        assert all(space.contains(value) for value in values)
        assert len(set(values)) == len(values)
        if n > 1:
            assert (values[0], values[-1]) == (space.ends()[0], space.ends()[-1])

    def test_one_value_is_the_middle_one(self):
        assert Space(0, 1, 0.1).values(1) == [0.5]
        assert Space(0.01, 1, log=True).values(1) == pytest.approx([0.1])

    def test_no_value_is_refused(self):
        for space in (Space(0, 1), Space(1, 3, whole=True), Space(options="ab"), Space(1, 2, log=True)):
            with pytest.raises(NearkinError, match="n=0"):
                space.values(0)


class TestForOptuna:
    @pytest.mark.parametrize(
        ("space", "value", "nearest"),
        [
            (Space(2, 100, 2), 1.0, 2.0),
            (Space(2, 100, 2), 41.2, 42.0),
            (Space(1e-6, 1, log=True), 3.0, 1.0),
            (Space(options=["a", "b"]), "c", "a"),
            (Space(options=["a", "b"]), "b", "b"),
            (Space(1, 10**6, log=True, whole=True), 7.6, 8),
            (Space(0, 1, 0.1), 0.30000000000000004, 0.3),
            (Space(0, 1), None, 0.0),
        ],
    )
    def test_the_nearest_value(self, space, value, nearest):
        assert space.nearest(value) == nearest
        assert type(space.nearest(value)) is type(nearest)

    def test_a_wide_space_takes_no_memory(self):
        space = Space(1, 10**12, whole=True)
        assert (space.count, space.at(5), len(space.values(3))) == (10**12, 6, 3)
        assert Space(1, 10**12, whole=True, log=True).contains(10**6)


class TestContains:
    @pytest.mark.parametrize(
        ("space", "inside", "outside"),
        [
            (Space(0.1, 2), [0.1, 1, 2.0], [0.0999, 2.01, math.nan, math.inf, "1", True, None]),
            (Space(0, 1, 0.1), [0, 0.1 + 0.2, 0.3, 1], [0.25, 1.1, -0.1, math.nan]),
            (Space(1e-6, 1, log=True), [1e-6, 1, 0.5], [0, 1e-7, 1.1]),
            (Space(2, 10, 2, whole=True), [2, 4.0, 10], [3, 2.5, 12, math.nan, math.inf, True]),
            (Space(options=[0.1, "auto"]), [0.1, 0.1 + 1e-16, "auto"], [0.2, "Auto", None]),
        ],
        ids=str,
    )
    def test_contains(self, space, inside, outside):
        assert [x for x in inside if not space.contains(x)] == []
        assert [x for x in outside if space.contains(x)] == []


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (Space(0.1, 2), "0.1 to 2"),
        (Space(2, 100, 2), "2 to 100 in steps of 2"),
        (Space(1e-6, 1, log=True), "1e-06 to 1, logarithmic"),
        (Space(5, 50, whole=True), "whole numbers 5 to 50"),
        (Space(5, 125, 10, whole=True), "whole numbers 5 to 125 in steps of 10"),
        (Space(1, 64, log=True, whole=True), "whole numbers 1 to 64, logarithmic"),
        (Space(options=[0.5, "auto"]), "one of 0.5, auto"),
    ],
)
def test_words(space, words):
    assert str(space) == words


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Space(1, 1), "low=1, high=1: low must be below high"),
        (lambda: Space(2.0, 1), "low=2, high=1"),
        (lambda: Space(0, math.inf), "finite"),
        (lambda: Space(math.nan, 1), "low=nan"),
        (lambda: Space(0, 1, 0.3), "step=0.3: whole steps must lead from 0 to 1"),
        (lambda: Space(0, 1, -0.1), "step=-0.1"),
        (lambda: Space(0, 1, 0), "step=0"),
        (lambda: Space(0, 1, log=True), "low=0: must be above 0"),
        (lambda: Space(1, 0.1, log=True), "low=1, high=0.1"),
        (lambda: Space(1.5, 3, whole=True), "low=1.5: a whole number"),
        (lambda: Space(0, 8, log=True, whole=True), "low=0: must be above 0"),
        (lambda: Space(1, 9, 2, log=True, whole=True), "step=2 beside log"),
        (lambda: Space(options=[1]), "at least two"),
        (lambda: Space(options=[1, 2, 1]), "each once"),
    ],
)
def test_what_is_no_space_is_refused(make, said):
    with pytest.raises(NearkinError, match=said):
        make()


class TestWhatPeopleWrite:
    @pytest.mark.parametrize(
        ("given", "whole", "space"),
        [
            ({"low": 0.1, "high": 1, "step": 0.1}, False, Space(0.1, 1, 0.1, source="given")),
            ({"low": 0, "high": 1}, False, Space(0.0, 1.0, source="given")),
            ({"low": "1e-6", "high": 1, "log": True}, False, Space(1e-6, 1.0, log=True, source="given")),
            ({"low": 1, "high": 8}, True, Space(1, 8, source="given", whole=True)),
            ({"low": 2.0, "high": 8, "step": 2}, True, Space(2, 8, 2, source="given", whole=True)),
            ({"low": 64, "high": 512, "log": True}, True, Space(64, 512, log=True, source="given", whole=True)),
            ([0.1, "1e-3", "auto"], False, Space(options=[0.1, 1e-3, "auto"], source="given")),
        ],
    )
    def test_the_forms(self, given, whole, space):
        assert parse_space("loss.alpha", given, whole=whole) == space

    @pytest.mark.parametrize(
        ("given", "whole", "said"),
        [
            (3, False, "3 is not a space"),
            (None, False, "None is not a space"),
            ("0.1-1", False, "'0.1-1' is not a space"),
            ({"low": 1}, False, "no number 'high'"),
            ({}, False, "no number 'low'"),
            ({"low": "few", "high": 3}, False, "no number 'low'"),
            ({"low": True, "high": 3}, False, "no number 'low'"),
            ({"low": 1, "high": 3, "step": None}, False, "no number 'step'"),
            ({"low": 1, "hihg": 3}, False, "has 'hihg', which no space has"),
            ({"low": 1, "high": 3, "log": "yes"}, False, "log='yes': true or false"),
            ({"low": 3, "high": 1}, False, "low=3, high=1"),
            ({"low": 0, "high": 1, "log": True}, False, "low=0: must be above 0"),
            ({"low": 1, "high": 2, "step": 0.1, "log": True}, False, "step=0.1 beside log"),
            ({"low": 0.5, "high": 4}, True, "low=0.5: a whole number"),
            ([1], False, "at least two"),
            ([], False, "at least two"),
            ([[1], [1]], False, "each once"),
        ],
    )
    def test_anything_else_names_the_key_what_was_given_and_the_forms(self, given, whole, said):
        with pytest.raises(NearkinError) as error:
            parse_space("loss.alpha", given, whole=whole)
        message = str(error.value)
        assert message.startswith("search space of loss.alpha: ")
        assert said in message
        assert "{low: 0.1, high: 1, step: 0.1}" in message
        assert "[a, b, c]" in message
        assert "\n" not in message
