"""What is done with so many classes in so many minutes."""

import pytest

from nearkin.fitting._plan import Costs, folds_for, plan, seconds_of

WHOLE, CUT = Costs(run=100, untrained=10, final=130), Costs(run=35, untrained=10, final=50, spent=20)
CUTS = {"none": WHOLE, "block10": CUT}
LOSSES = ("proxy_anchor", "contrastive", "margin")


@pytest.mark.parametrize(
    ("classes", "folds", "share"),
    [(1, 0, 0), (5, 0, 0), (6, 3, 0), (8, 3, 0), (15, 3, 0), (16, 4, 0), (31, 4, 0), (32, 4, 0.2)],
)
def test_few_classes_are_never_divided_into_less_than_two(classes, folds, share):
    assert folds_for(classes) == (folds, share)
    assert folds == 0 or classes // folds >= 2


def test_the_whole_network_comes_before_further_losses_and_a_cut_before_nothing():
    def planned(seconds, all_losses=False):
        decided = plan(seconds, 2, 40, CUTS, LOSSES, all_losses=all_losses)
        return decided.cut, len(decided.losses)

    assert planned(10_000) == ("none", 3)
    assert planned(500) == ("none", 1)
    assert planned(250) == ("block10", 1)
    assert planned(400, all_losses=True) == ("block10", 3)
    assert planned(60)[1] == 0


@pytest.mark.parametrize("seconds", [100, 300, 600, 1200, 5000])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_plan_takes_at_most_eight_tenths_of_the_time(seconds, workers):
    decided = plan(seconds, workers, 40, CUTS, LOSSES, all_losses=False)
    if decided.losses:
        assert decided.seconds <= 0.8 * seconds
        assert decided.seconds == seconds_of(CUTS[decided.cut], 4, len(decided.losses), workers)
