"""The two toys: collapse is asserted by spread and ρ, not by accuracy, which hardly changes."""

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def toy_rho():
    sys.path.insert(0, str(EXAMPLES))  # as `python examples/toy_rho.py` has it
    try:
        import toy_rho

        yield toy_rho
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def means(toy_rho):
    """Two seeds of each; half the steps show it already."""
    diagonal, vertical = toy_rho.TOYS
    base, script, unswitched, _, switching = toy_rho.MODES
    plan = [(diagonal, mode) for mode in (base, script, unswitched, switching)]
    plan += [(vertical, mode) for mode in (base, script)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_rho, "STEPS", 100)
        return {
            (toy.name, mode.attraction, mode.p_switch): toy_rho.Result(
                *np.mean([toy_rho.run(toy, mode, seed).result() for seed in range(2)], axis=0)
            )
            for toy, mode in plan
        }


@pytest.mark.parametrize("p_switch", [0, 0.3])
def test_with_attraction_everything_is_within_a_few_degrees(means, p_switch):
    mean = means["diagonal", True, p_switch]
    assert 3 < mean.train_spread < 11  # four classes, 0.1 = 5.7° apart
    assert mean.test_spread < 8
    assert mean.rho > 0.3


@pytest.mark.parametrize("p_switch", [0, 0.001])
def test_without_attraction_it_is_not_switched_or_not(means, p_switch):
    mean, base = means["diagonal", False, p_switch], means["diagonal", True, 0]
    assert mean.train_spread > 3 * base.train_spread
    assert mean.test_spread > 2 * base.test_spread
    assert mean.rho < 0.08


def test_the_vertical_toy_does_the_same(means):
    base, script = means["vertical", True, 0], means["vertical", False, 0.001]
    assert base.test_spread < 8
    assert base.rho > 0.3
    assert script.test_spread > 1.7 * base.test_spread
    assert script.rho < 0.2


@pytest.mark.parametrize("attraction", [True, False])
def test_the_objective_is_the_mean_over_all_triplets(toy_rho, attraction):
    torch.manual_seed(0)
    z, labels = torch.randn(8, 2, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    z[0] = z[1] * 1.01 + 0.02  # some negatives, too, must be near for the hinge to act
    z[3] = z[0] + 0.03
    e = (z / z.norm(dim=1, keepdim=True)).tolist()
    terms = []
    for a, p, n in itertools.permutations(range(8), 3):
        if labels[a] == labels[p] != labels[n]:
            attract = math.dist(e[a], e[p]) if attraction else 0
            terms.append(attract + max(0, 0.1 - math.dist(e[a], e[n])))
    value = toy_rho.Mode("", attraction, 0).objective()(z, labels)
    assert sum(terms) > 0
    assert float(value) == pytest.approx(sum(terms) / len(terms), abs=1e-9)


def test_modes_of_a_seed_share_data_and_seeds_do_not(toy_rho, monkeypatch):
    monkeypatch.setattr(toy_rho, "STEPS", 3)
    toy, base, switching = toy_rho.TOYS[0], toy_rho.MODES[0], toy_rho.MODES[4]
    first, again = toy_rho.run(toy, base, 0), toy_rho.run(toy, base, 0)
    other, next_seed = toy_rho.run(toy, switching, 0), toy_rho.run(toy, base, 1)
    assert torch.equal(first.train_z, again.train_z)
    assert torch.equal(first.train_x, other.train_x)
    assert not torch.equal(first.train_z, other.train_z)
    assert not torch.equal(first.train_x, next_seed.train_x)


def test_points_lie_on_their_lines(toy_rho):
    for toy in toy_rho.TOYS:
        for segments in (toy.train, toy.test):
            points, labels = toy_rho.sample(segments)
            assert labels.bincount().tolist() == [15] * 4
            assert len(points.unique(dim=0)) == 60
            for point, label in zip(points.tolist(), labels.tolist(), strict=True):
                start, end = segments[label]
                detour = math.dist(start, point) + math.dist(point, end) - math.dist(start, end)
                assert detour == pytest.approx(0, abs=1e-6)


def test_spread_is_the_mean_angle_to_the_mean_direction(toy_rho):
    angles = torch.deg2rad(torch.tensor([60.0, 80.0, 100.0, 120.0]))
    assert toy_rho.spread(torch.stack([angles.cos(), angles.sin()], 1)) == pytest.approx(20, abs=1e-4)


def test_the_command_prints_tables_and_draws(toy_rho, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(toy_rho, "STEPS", 2)
    monkeypatch.setattr(sys, "argv", ["toy_rho.py", "--seeds", "2", "--out", str(tmp_path / "new")])
    toy_rho.main()
    printed = capsys.readouterr().out
    for mode in toy_rho.MODES:
        assert printed.count(f"| {mode.label} |") == 2
    for name in ("diagonal", "vertical"):
        assert 10_000 < (tmp_path / "new" / f"toy_{name}.png").stat().st_size < 150_000


def test_the_spectrum_panel_shows_the_shares(toy_rho):
    from matplotlib.figure import Figure
    from toy_report import _spectrum

    axes = Figure().subplots()
    _spectrum(axes, 0.8)
    first, second = axes.patches
    assert first.get_height() == pytest.approx(4 * second.get_height())
    assert [text.get_text() for text in axes.texts] == ["σ₁", "σ₂"]


def test_no_seed_is_refused(toy_rho, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["toy_rho.py", "--seeds", "0"])
    with pytest.raises(SystemExit):
        toy_rho.main()
    assert "--seeds 0: at least 1" in capsys.readouterr().err
