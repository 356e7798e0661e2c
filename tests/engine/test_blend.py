"""The line from the first weights of a network to the trained ones."""

import pytest
import torch

from nearkin.engine.blend import GRID, Line, best
from nearkin.models import build_model


def states():
    torch.manual_seed(0)
    first, last = build_model(backbone="convnet", dim=8), build_model(backbone="convnet", dim=8)
    last.batch_norms()[0].num_batches_tracked += 7
    return first.state_dict(), last.state_dict()


def test_the_ends_are_the_states_and_between_them_it_is_straight():
    first, last = states()
    model, measured = build_model(backbone="convnet", dim=8), []
    line = Line(model, first, last, statistics=lambda: measured.append(1))
    for a, state in ((0, first), (1, last)):
        line.go_to(a)
        floats = [name for name, value in state.items() if value.is_floating_point()]
        assert all(torch.equal(model.state_dict()[name], state[name]) for name in floats)
    assert not measured  # both ends have statistics of their own
    line.go_to(0.3)
    assert measured == [1]
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            assert torch.allclose(value, first[name] + 0.3 * (last[name] - first[name]), atol=1e-6)
        else:
            assert torch.equal(value, last[name])


def test_every_a_of_the_grid_is_measured_under_its_own_weights():
    first, last = states()
    line = Line(build_model(backbone="convnet", dim=8), first, last, statistics=lambda: None)
    name = "head.weight" if "head.weight" in first else next(key for key in first if key.startswith("head"))
    sums = line.measured(lambda model: {"sum": float(model.state_dict()[name].double().sum())})
    assert tuple(sums) == GRID
    start, end = (float(state[name].double().sum()) for state in (first, last))
    assert all(sums[a]["sum"] == pytest.approx(start + a * (end - start), abs=1e-3) for a in GRID)


def test_of_equal_scores_the_middle_of_the_line_wins():
    assert best({0.0: 1.0, 0.45: 1.0, 1.0: 1.0}) == 0.45
    assert best({0.0: 1.0, 0.45: 1.0, 1.0: 1.1}) == 1.0
