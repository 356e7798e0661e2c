"""Claims decided from the seeds of a study: made-up rows whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from nearkin.published.claims import claim, claims
from nearkin.published.own import FAILS, HOLDS, OPEN, decide

TEN = ["proxy_anchor", "soft_triple", "multi_similarity", "contrastive", "lifted_structure", "margin", "arcface",
       "proxy_nca", "triplet", "npair"]  # fmt: skip
NOISE = [0.001, -0.002, 0.0015, -0.0005, 0.0]


def row(loss, level, *, seeds=5, noise=1.0, metric="recall@1", **settings):
    """A method whose seeds lie around a level; the noise is laid on otherwise for every loss: differences vary too."""
    spec = {"data.name": "cub", "protocol.name": "fixed_val", "model.backbone": "resnet50", "model.dim": 128,
            "loss.name": loss, "train.epochs": 6}  # fmt: skip
    spec |= {key.replace("__", "."): value for key, value in settings.items()}
    shift = sum(map(ord, loss)) % 5
    values = {seed: {metric: level + noise * NOISE[(seed + shift) % 5]} for seed in range(seeds)}
    return {"name": loss, "spec": spec, "values": values}


def ladder(step=0.02, **more):
    return [row(loss, 0.6 - step * i, **more) for i, loss in enumerate(TEN)]


def test_the_best_of_ten_is_the_best():
    found = decide(claim("psomas_proxy_anchor_wins"), ladder())
    assert found.state == HOLDS
    assert "proxy_anchor less soft_triple" in found.reason
    assert "9 comparisons" in found.reason
    assert 1.5 < found.low < found.measured < found.high < 2.5


def test_one_loss_that_is_clearly_better_settles_it():
    rows = [*ladder()[:-1], row("npair", 0.7)]
    found = decide(claim("psomas_proxy_anchor_wins"), rows)
    assert found.state == FAILS
    assert found.reason.startswith("proxy_anchor less npair: -10.0")
    assert found.high < 0


def test_a_lead_within_the_noise_is_left_open():
    rows = [row("proxy_anchor", 0.6), row("soft_triple", 0.5999), *ladder()[2:]]
    found = decide(claim("psomas_proxy_anchor_wins"), rows)
    assert found.state == OPEN
    assert "proxy_anchor less soft_triple" in found.reason
    assert "with 5 seeds" in found.reason
    assert found.low < 0 < found.high


def test_the_interval_is_that_of_paired_differences():
    a, b = row("margin", 0.63), row("npair", 0.60, noise=2.0)
    found = decide(claim("psomas_margin_npair_below_4"), [a, b])
    d = [100 * (a["values"][s]["recall@1"] - b["values"][s]["recall@1"]) for s in range(5)]
    low, high = stats.t.interval(0.95, 4, loc=np.mean(d), scale=stats.sem(d))
    assert found.state == HOLDS
    np.testing.assert_allclose([found.measured, found.low, found.high], [np.mean(d), low, high])


@pytest.mark.parametrize(("lead", "state"), [(0.02, HOLDS), (0.06, FAILS), (-0.02, FAILS), (0.04, OPEN)])
def test_bounds_on_both_sides(lead, state):
    assert decide(claim("psomas_margin_npair_below_4"), [row("margin", 0.5 + lead), row("npair", 0.5)]).state == state


def test_one_seed_decides_nothing():
    found = decide(claim("psomas_margin_npair_below_4"), [row("margin", 0.52, seeds=1), row("npair", 0.5)])
    assert found.state == OPEN
    assert "one common seed, so no interval" in found.reason
    assert found.low is None


def test_no_common_seed():
    other = row("npair", 0.5)
    other["values"] = {seed + 10: values for seed, values in other["values"].items()}
    assert "no common seed" in decide(claim("psomas_margin_npair_below_4"), [row("margin", 0.52), other]).reason


def test_what_is_missing_is_named():
    found = decide(claim("psomas_npair_last"), [each for each in ladder() if each["name"] not in ("npair", "arcface")])
    assert found.state == OPEN
    assert found.reason == "the study lacks npair; arcface"


def test_a_missing_method_does_not_save_a_claim_that_fails():
    rows = [row("npair", 0.9), *ladder()[:3]]
    assert decide(claim("psomas_npair_last"), rows).state == FAILS


def test_untrained_networks_are_no_methods():
    rows = [*ladder(), row("proxy_anchor", 0.1, train__epochs=0)]
    assert decide(claim("psomas_proxy_anchor_wins"), rows).state == HOLDS


def test_a_metric_that_is_not_stored():
    assert decide(claim("psomas_npair_last"), ladder(metric="map_at_r")).reason == "the study lacks the metric recall@1"


@pytest.mark.parametrize("form", ["lifted_structure", "lifted_similarity", "lifted_weighted", "generalized_lifted"])
def test_any_lifted_form_is_lifted_structure(form):
    assert decide(claim("psomas_margin_lifted_below_3"), [row("margin", 0.51), row(form, 0.5)]).state == HOLDS


def test_rows_are_compared_within_equal_settings_and_all_must_hold():
    """Sizes differ far more than losses do: across sizes npair would not be last."""
    small, large = ladder(model__dim=64), ladder(model__dim=512)
    for each in large:
        for values in each["values"].values():
            values["recall@1"] += 0.3
    assert decide(claim("psomas_npair_last"), [*small, *large]).state == HOLDS
    reversed_ = [row(loss, 0.6 - 0.02 * i, model__dim=512) for i, loss in enumerate(reversed(TEN))]
    assert decide(claim("psomas_npair_last"), [*small, *reversed_]).state == FAILS


def test_other_settings_than_the_sources_are_said():
    found = decide(claim("psomas_ms_over_pa_cars_512"), [row("multi_similarity", 0.6), row("proxy_anchor", 0.5)])
    assert found.state == HOLDS
    assert found.differs == "data.name cub, there cars196; model.dim 128, there 512"


def test_rows_with_the_sources_settings_come_first():
    rows = [row(loss, level, model__dim=dim) for dim, (a, b) in {512: (0.6, 0.5), 64: (0.5, 0.6)}.items()
            for loss, level in (("multi_similarity", a), ("proxy_anchor", b))]  # fmt: skip
    assert decide(claim("psomas_ms_over_pa_cars_512"), rows).state == HOLDS


def test_an_ablation_compares_a_loss_with_itself():
    rows = []
    for i, loss in enumerate(("contrastive", "margin", "snr_triplet", "triplet")):
        for miner in ("distance_weighted", "random"):
            rows.append(row(loss, 0.4 + 0.1 * i, miner__name=miner))
        rows.append(row(loss, 0.42 + 0.1 * i, noise=2.0, miner__name="distance_weighted", regulariser__name="rho"))
    found = decide(claim("roth_rho_improves_all"), rows)
    assert found.state == HOLDS
    assert "4 comparisons" in found.reason
    assert found.measured == pytest.approx(2, abs=0.3)
    assert decide(claim("roth_rho_improves_all"), rows[:-1]).reason == (
        "the study lacks triplet with miner.name=distance_weighted, regulariser.name=rho")  # fmt: skip


def test_the_mean_over_losses_of_a_difference_of_networks():
    rows = [row(loss, level + 0.01 * i, model__backbone=net, noise=noise) for i, loss in enumerate(TEN)
            for net, level, noise in (("bn_inception", 0.5, 1.0), ("googlenet", 0.465, 2.0))]  # fmt: skip
    found = decide(claim("psomas_googlenet_below_bn_inception"), rows)
    assert (found.state, found.measured) == (HOLDS, pytest.approx(3.5))
    assert "mean of 10 differences" in found.reason
    assert decide(claim("psomas_googlenet_below_bn_inception"), rows[1:]).state == OPEN


@pytest.mark.parametrize(("worst", "state"), [(0.59, HOLDS), (0.5, FAILS)])
def test_the_spread_over_samplers(worst, state):
    rows = [row(loss, worst if sampler == "spc_r" else 0.6, sampler__name=sampler, noise=0.5 + i)
            for loss in ("margin", "multi_similarity", "histogram")
            for i, sampler in enumerate(("spc", "spc_r", "ddm", "gc", "frd"))]  # fmt: skip
    found = decide(claim("roth_samplers_small_cub_cars"), rows)
    assert found.state == state
    assert "30 comparisons" in found.reason


@pytest.mark.parametrize(("best", "state"), [(0.61, HOLDS), (0.7, FAILS)])
def test_the_best_less_the_mean(best, state):
    losses = ("contrastive", "triplet", "margin", "multi_similarity", "npair", "proxy_nca", "arcface", "norm_softmax")
    found = decide(claim("roth_losses_saturate"), [row(loss, best if loss == "margin" else 0.6) for loss in losses])
    assert found.state == state
    mean = (best - 0.6) * 7 / 8 * 100
    assert state == HOLDS or found.measured == pytest.approx(mean, abs=0.3)


def test_the_order_by_sums_of_ranks():
    assert decide(claim("psomas_tournament_order"), ladder(noise=0)).state == HOLDS
    assert decide(claim("psomas_tournament_order"), [*ladder(noise=0)[:-1], row("npair", 0.9)]).state == FAILS
    assert decide(claim("psomas_tournament_order"), ladder(noise=0, seeds=2)).state == OPEN     # which may be chance
    twice = [*ladder(noise=0), row("triplet", 0.2, loss__margin=0.7)]
    assert "of triplet it has several" in decide(claim("psomas_tournament_order"), twice).reason


@pytest.mark.parametrize(("place", "state"), [(3, HOLDS), (6, FAILS)])
def test_a_rank(place, state):
    rows = []
    for dim, rank in ((64, 8), (1024, place)):
        order = [loss for loss in TEN if loss != "arcface"]
        order.insert(rank - 1, "arcface")
        rows += [row(loss, 0.6 - 0.02 * i, model__dim=dim, data__name="cars196") for i, loss in enumerate(order)]
    found = decide(claim("psomas_arcface_third_cars_1024"), rows)
    assert (found.state, found.unit) == (state, "ranks")


@pytest.mark.parametrize(("last", "state"), [(0.61, HOLDS), (0.9, FAILS)])
def test_gains_that_become_smaller(last, state):
    rows = [row(loss, level, model__dim=dim) for loss in TEN
            for dim, level in ((64, 0.4), (128, 0.5), (512, 0.6), (1024, last))]  # fmt: skip
    found = decide(claim("psomas_size_gain_saturates"), rows)
    assert found.state == state
    assert found.measured == pytest.approx(10 - 100 * (last - 0.6))
    assert decide(claim("psomas_size_gain_saturates"), rows[:-1]).reason == "the study lacks npair with model.dim=1024"


@pytest.mark.parametrize(("sign", "state"), [(-1, HOLDS), (1, FAILS)])
def test_a_correlation_over_methods(sign, state):
    rows = []
    losses = ("contrastive", "margin", "triplet", "multi_similarity", "arcface", "npair", "norm_softmax")
    for i, loss in enumerate(losses):
        one = row(loss, 0.4 + 0.02 * i)
        for values in one["values"].values():
            values["train.rho"] = 1 + sign * 0.1 * i + 0.01 * (i % 3)
        rows.append(one)
    found = decide(claim("roth_spectral_decay_correlates"), rows)
    assert (found.state, found.unit) == (state, "")
    assert np.sign(found.measured) == sign


def test_any_of_several_is_enough():
    def study(lead):
        rows = [row("soft_triple", 0.6), row("proxy_anchor", 0.65)]
        for each, level in zip(rows, (0.9 + lead, 0.9), strict=True):
            for seed, values in each["values"].items():
                values |= {f"recall@{k}": level + NOISE[(seed + k) % 5] / (1 + (each is rows[0])) for k in (2, 4, 8)}
        return rows

    one = claim("psomas_soft_triple_beats_pa_cub_bn")
    assert decide(one, study(0.02)).state == HOLDS
    assert decide(one, study(-0.02)).state == FAILS
    assert decide(one, study(0.0)).state == OPEN


def test_holm_corrects_over_all_comparisons():
    """Nine leads, each beyond its own 95 % interval but not beyond the corrected one, do not hold together."""
    rows, best = [row("proxy_anchor", 0.6, noise=0)], [0.011, 0.009, 0.013, 0.007, 0.0017]
    for loss in TEN[1:]:
        other = row(loss, 0.6)
        other["values"] = {s: {"recall@1": 0.6 - d} for s, d in enumerate(best)}
        rows.append(other)
    (condition,) = claim("psomas_proxy_anchor_wins").own["conditions"]
    single = replace(claim("psomas_proxy_anchor_wins"), own={"conditions": [{**condition, "right": ["npair"]}]})
    assert decide(single, rows).state == HOLDS
    together = decide(claim("psomas_proxy_anchor_wins"), rows)
    assert together.state == OPEN
    assert together.low > 0


def test_equal_methods_are_decided_in_at_most_one_of_twenty_studies():
    """Ten losses of the same quality: either word would be an error. 0.05 and three standard errors of 500 studies."""
    rng, wrong, one = np.random.default_rng(0), 0, claim("psomas_proxy_anchor_wins")
    for _ in range(500):
        rows = ladder(step=0, noise=0)
        for each in rows:
            each["values"] = {seed: {"recall@1": value} for seed, value in enumerate(rng.normal(0.6, 0.01, 5))}
        wrong += decide(one, rows).state != OPEN
    assert wrong / 500 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 500)


def test_what_no_study_can_tell():
    found = decide(claim("kobs_untrained_differs"), ladder())
    assert found.state == OPEN
    assert "saliency maps" in found.reason


@pytest.mark.parametrize("each", claims(), ids=lambda each: each.id)
def test_every_claim_gives_a_verdict_for_an_empty_study(each):
    found = decide(each, [])
    assert found.state == OPEN
    assert found.reason
