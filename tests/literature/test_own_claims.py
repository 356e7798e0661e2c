"""Claims decided from the seeds of a study: made-up rows whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from claimed import NOISE, TEN, ladder, of_values, row, spec_of, twelve
from scipy import stats

from nearkin.literature.claims import claim, claims
from nearkin.literature.decisions import ELSEWHERE, FAILS, HOLDS, OPEN, decide, decide_together
from nearkin.literature.matching import StudyRow
from nearkin.statistics.unit import ByClass, Key, Place, Row


def test_the_best_of_ten_is_the_best():
    verdict = decide(claim("psomas_proxy_anchor_wins"), twelve())
    assert verdict.state == HOLDS
    assert "proxy_anchor less soft_triple" in verdict.reason
    assert "the closest of 108 comparisons" in verdict.reason
    assert 1.5 < verdict.low < verdict.measured < verdict.high < 2.5


def test_one_loss_that_is_clearly_better_settles_it():
    rows = [*twelve()[:-1], row("npair", 0.7, model__backbone="googlenet", model__dim=1024)]
    verdict = decide(claim("psomas_proxy_anchor_wins"), rows)
    assert verdict.state == FAILS
    assert verdict.reason.startswith("proxy_anchor less npair: -10.0")
    assert verdict.high < 0


def test_a_lead_within_the_noise_is_left_open():
    rows = [one if one.name != "soft_triple" else row("soft_triple", 0.5999, **settings(one)) for one in twelve()]
    verdict = decide(claim("psomas_proxy_anchor_wins"), rows)
    assert verdict.state == OPEN
    assert "proxy_anchor less soft_triple" in verdict.reason
    assert "with 5 seeds" in verdict.reason
    assert verdict.low < 0 < verdict.high


def settings(one):
    return {"model__backbone": one.spec["model.backbone"], "model__dim": one.spec["model.dim"]}


def test_the_interval_is_that_of_paired_differences():
    a, b = row("margin", 0.63), row("npair", 0.60, noise=2.0)
    verdict = decide(claim("psomas_margin_npair_below_4"), [a, b])
    d = [100 * (a.metrics["recall@1"].values[s] - b.metrics["recall@1"].values[s]) for s in range(5)]
    low, high = stats.t.interval(0.95, 4, loc=np.mean(d), scale=stats.sem(d))
    assert verdict.state == HOLDS
    np.testing.assert_allclose([verdict.measured, verdict.low, verdict.high], [np.mean(d), low, high])


@pytest.mark.parametrize(("lead", "state"), [(0.02, HOLDS), (0.06, FAILS), (-0.02, FAILS), (0.04, OPEN)])
def test_bounds_on_both_sides(lead, state):
    assert decide(claim("psomas_margin_npair_below_4"), [row("margin", 0.5 + lead), row("npair", 0.5)]).state == state


@pytest.mark.parametrize("seeds", [1, 2])
def test_fewer_than_three_seeds_decide_nothing(seeds):
    """Two seeds with equal differences had an interval of width 0."""
    rows = [row("margin", 0.52, seeds=seeds, noise=0), row("npair", 0.5, noise=0)]
    verdict = decide(claim("psomas_margin_npair_below_4"), rows)
    assert verdict.state == OPEN
    assert verdict.reason.endswith("at least three seeds are needed")
    assert verdict.low is None


def test_no_spread_is_smaller_than_the_resolution_of_the_metric():
    """Ten queries cannot show a difference of two points in three seeds that agree by rounding."""

    def rows(queries):
        values = {
            loss: Row.of_seeds(loss, dict.fromkeys(range(3), level), queries=queries)
            for loss, level in (("margin", 0.52), ("npair", 0.5))
        }
        return [StudyRow(loss, spec_of(loss), {"recall@1": row}) for loss, row in values.items()]

    assert decide(claim("psomas_margin_npair_below_4"), rows(10_000)).state == HOLDS
    assert decide(claim("psomas_margin_npair_below_4"), rows(10)).state == OPEN


def test_no_common_seed():
    other = of_values("npair", {seed + 10: 0.5 for seed in range(5)})
    verdict = decide(claim("psomas_margin_npair_below_4"), [row("margin", 0.52), other])
    assert (verdict.state, verdict.measured) == (OPEN, None)
    assert "no common seeds" in verdict.reason


def test_folds_are_matched_between_the_rows():
    """Equal fold by fold; margin has the easy fold alone."""
    easy = {0: 0.2, 1: 0.3, 2: 0.4, 3: 0.9}

    def folded(loss, folds, lead=0.0):
        values = {Key(s, Place((), f)): easy[f] + lead + NOISE[(s + len(loss)) % 5] for s in range(5) for f in folds}
        return StudyRow(loss, spec_of(loss), {"recall@1": Row(loss, values)})

    one = claim("psomas_margin_npair_below_4")
    verdict = decide(one, [folded("margin", [3]), folded("npair", [0, 1, 2, 3])])
    assert verdict.state == OPEN
    assert abs(verdict.measured) < 0.2
    assert decide(one, [folded("margin", [3], lead=0.02), folded("npair", [0, 1, 2, 3])]).state == HOLDS


def test_other_test_classes_must_agree_too():
    """Three seeds agree on two points, but one class in ten makes all of the difference."""

    def rows(one_class):
        def by_class(level):
            means = np.full(10, 0.5) + (np.r_[10 * level, np.zeros(9)] if one_class else level)
            return ByClass(tuple("abcdefghij"), means, np.full(10, 20))

        return [
            StudyRow(
                loss,
                spec_of(loss),
                {
                    "recall@1": Row.of_seeds(
                        loss,
                        {s: 0.5 + level + NOISE[(s + len(loss)) % 5] for s in range(5)},
                        queries=200,
                        by_class=lambda key, level=level: by_class(level),
                    )
                },
            )
            for loss, level in (("margin", 0.02), ("npair", 0.0))
        ]

    one = claim("psomas_margin_npair_below_4")
    assert decide(one, rows(one_class=False)).state == HOLDS
    assert decide(one, rows(one_class=True)).state == OPEN


class TestWhatIsMissing:
    def test_a_method_in_some_experiments_is_named(self):
        rows = [one for one in twelve() if one.name != "arcface" or one.spec["model.dim"] != 64]
        verdict = decide(claim("psomas_npair_last"), rows)
        assert verdict.state == OPEN
        assert verdict.reason == "the study lacks " + "; ".join(
            f"arcface at model.backbone={net}, model.dim=64" for net in ("resnet50", "bn_inception", "googlenet")
        )

    def test_an_experiment(self):
        rows = [one for one in twelve() if one.spec["model.backbone"] != "googlenet"]
        verdict = decide(claim("psomas_proxy_anchor_wins"), rows)
        assert verdict.state == OPEN
        assert (
            verdict.reason
            == "the study lacks "
            + "; ".join(f"runs at model.backbone=googlenet, model.dim={dim}" for dim in (64, 128, 512))
            + " and 1 more"
        )
        pooled = decide(claim("psomas_tournament_order"), rows)
        assert pooled.state == OPEN
        assert "at model.backbone=googlenet" in pooled.reason

    def test_it_does_not_save_a_claim_that_fails(self):
        rows = [row("npair", 0.9), *ladder()[:3]]
        assert decide(claim("psomas_npair_last"), rows).state == FAILS

    def test_it_does_not_stop_one_that_needs_a_single_comparison(self):
        rows = [
            row(loss, {f"recall@{k}": level for k in (1, 2, 4, 8)}, model__backbone="bn_inception", model__dim=64)
            for loss, level in (("soft_triple", 0.6), ("proxy_anchor", 0.5))
        ]
        assert decide(claim("psomas_soft_triple_beats_pa_cub_bn"), rows).state == HOLDS
        behind = [rows[0], row("proxy_anchor", {f"recall@{k}": 0.7 for k in (1, 2, 4, 8)}, **settings(rows[0]))]
        assert decide(claim("psomas_soft_triple_beats_pa_cub_bn"), behind).state == OPEN  # the other sizes may do

    def test_a_metric_is_named_with_what_measures_it(self):
        rows = [row("margin", 0.5, metric="map_at_r"), row("npair", 0.5, metric="map_at_r")]
        verdict = decide(claim("psomas_margin_npair_below_4"), rows, "demo")
        assert verdict.state == OPEN
        assert verdict.reason == (
            "the study lacks the metric recall@1: `nearkin compare demo --metric recall@1` measures it"
        )

    def test_joined_folds_too(self):
        rows = [
            row(
                loss,
                dict.fromkeys(("p@1", "r_precision", "map_at_r"), level),
                method__name=method,
                folds=range(4),
                joined=["p@1", "map_at_r"],
                data__name=data,
                protocol__name="mlrc",
            )
            for loss in ("triplet", "proxy_anchor", "cosface")
            for method, level in (("drml", 0.6), (None, 0.5))
            for data in ("cub", "cars196")
        ]
        assert decide(claim("drml_improves_mlrc"), rows, "drml-table").reason == (
            "the study lacks the metric r_precision of joined folds: "
            "`nearkin compare drml-table --evaluation concatenated --metric r_precision` measures it"
        )


class TestNotTestedHere:
    def test_other_data(self):
        """Glyphs refuted the literature."""
        verdict = decide(claim("psomas_proxy_anchor_wins"), twelve(step=-0.02, data__name="glyphs"))
        assert verdict.state == ELSEWHERE
        assert verdict.reason == "it is about data.name cub; these runs have glyphs"
        assert (verdict.measured, verdict.p) == (None, None)

    @pytest.mark.parametrize("one", claims(), ids=lambda one: one.id)
    def test_glyphs_test_no_claim_at_all(self, one):
        every = [
            row(loss, 0.5, data__name="glyphs", miner__name=miner)
            for loss in (*TEN, "hist", "norm_softmax")
            for miner in (None, "distance_weighted")
        ]
        assert decide(one, every).state == ELSEWHERE

    def test_a_network_and_a_size_that_the_words_name(self):
        one = claim("psomas_margin_npair_below_4")
        small = [row("margin", 0.52, model__dim=64), row("npair", 0.5, model__dim=64)]
        assert decide(one, small).state == ELSEWHERE
        assert decide(one, small).reason == "it is about model.dim 128; these runs have 64"
        assert decide(claim("psomas_npair_last"), ladder(model__backbone="efficientnet_lite0")).state == ELSEWHERE

    def test_none_of_its_rows(self):
        verdict = decide(claim("hist_over_ablations"), ladder(model__dim=512))
        assert verdict.state == ELSEWHERE
        assert "the study lacks hist with loss.graph=soft" in verdict.reason

    def test_what_no_study_can_tell(self):
        verdict = decide(claim("kobs_untrained_differs"), ladder())
        assert verdict.state == ELSEWHERE
        assert "saliency maps" in verdict.reason

    @pytest.mark.parametrize("one", claims(), ids=lambda one: one.id)
    def test_an_empty_study(self, one):
        verdict = decide(one, [])
        assert verdict.state == ELSEWHERE
        assert verdict.reason


def test_settings_of_the_source_that_its_words_do_not_name_are_said():
    rows = [
        row(
            "multi_similarity",
            level,
            protocol__name="fixed_val",
            protocol__share=share,
            model__dim=64,
            model__backbone="bn_inception",
            noise=1 + share,
        )
        for share, level in ((0.1, 0.6), (0.05, 0.5), (0.2, 0.5), (0.3, 0.5))
    ]
    verdict = decide(claim("psomas_split_90_10"), rows)
    assert verdict.state == HOLDS
    assert verdict.differs == "model.dim 64, there 512"


def test_rows_with_the_sources_settings_come_first():
    rows = [
        row(
            "multi_similarity",
            level,
            protocol__name="fixed_val",
            protocol__share=share,
            model__dim=dim,
            model__backbone="bn_inception",
            noise=1 + share,
        )
        for dim, sign in ((512, 1), (64, -1))
        for share, level in ((0.1, 0.5 + sign * 0.1), (0.05, 0.5), (0.2, 0.5), (0.3, 0.5))
    ]
    assert decide(claim("psomas_split_90_10"), rows).state == HOLDS


def test_untrained_networks_are_no_methods():
    rows = [*twelve(), row("proxy_anchor", 0.1, train__epochs=0)]
    assert decide(claim("psomas_proxy_anchor_wins"), rows).state == HOLDS


@pytest.mark.parametrize("form", ["lifted_structure", "lifted_similarity", "lifted_weighted", "generalized_lifted"])
def test_any_lifted_form_is_lifted_structure(form):
    assert decide(claim("psomas_margin_lifted_below_3"), [row("margin", 0.51), row(form, 0.5)]).state == HOLDS


def test_rows_are_compared_within_equal_settings_and_all_must_hold():
    """Sizes differ far more than losses do: across sizes npair would not be last."""
    rows = [one for dim, level in ((64, 0.0), (128, 0.2), (512, 0.3), (1024, 0.35)) for one in twelve_at(dim, level)]
    assert decide(claim("psomas_npair_last"), rows).state == HOLDS
    turned = [*rows[30:], *twelve_at(64, 0.0, TEN[::-1])]
    assert decide(claim("psomas_npair_last"), turned).state == FAILS


def twelve_at(dim, level, order=TEN):
    return [
        row(loss, 0.6 + level - 0.02 * i, model__dim=dim, model__backbone=backbone)
        for i, loss in enumerate(order)
        for backbone in ("resnet50", "bn_inception", "googlenet")
    ]


def test_rows_on_other_images_are_never_compared():
    a, b = row("margin", 0.52), row("npair", 0.5)
    verdict = decide(claim("psomas_margin_npair_below_4"), [replace(a, data="all"), replace(b, data="some left out")])
    assert verdict.state == ELSEWHERE
    assert "with settings that are otherwise equal" in verdict.reason


def test_an_ablation_compares_a_loss_with_itself():
    def rows(data, missing=()):
        made = []
        for i, (loss, beta) in enumerate(
            [("contrastive", 1.0), ("margin", 0.6), ("margin", 1.2), ("snr_triplet", 1.0), ("triplet", 1.0)]
        ):
            more = {"data__name": data, "loss__beta": beta, "miner__name": "distance_weighted"}
            made.append(row(loss, 0.4 + 0.1 * i, **more))
            made.append(row(loss, 0.42 + 0.1 * i, noise=2.0, regulariser__name="rho", **more))
        return [one for one in made if one.name not in missing]

    one, sets = claim("roth_rho_improves_all"), ["cub", "cars196", "sop"]
    verdict = decide(one, [made for data in sets for made in rows(data)])
    assert verdict.state == HOLDS
    assert "15 comparisons" in verdict.reason
    assert verdict.measured == pytest.approx(2, abs=0.3)
    assert decide(one, rows("cub")).state == OPEN  # "on every data set"
    assert "data.name=cars196" in decide(one, rows("cub")).reason
    lacking = [made for data in sets for made in rows(data, missing=["triplet"] if data == "sop" else [])]
    assert decide(one, lacking).reason == (
        "the study lacks triplet with miner.name=distance_weighted, regulariser.name=rho at data.name=sop; "
        "triplet with miner.name=distance_weighted, regulariser.name=none at data.name=sop"
    )


def test_the_mean_over_losses_and_sizes_of_a_difference_of_networks():
    rows = [
        row(loss, level + 0.01 * i, model__backbone=net, noise=noise, model__dim=dim)
        for i, loss in enumerate(TEN)
        for net, level, noise in (("bn_inception", 0.5, 1.0), ("googlenet", 0.465, 2.0))
        for dim in (64, 128, 512, 1024)
    ]
    verdict = decide(claim("psomas_googlenet_below_bn_inception"), rows)
    assert (verdict.state, verdict.measured) == (HOLDS, pytest.approx(3.5))
    assert "mean of 40 differences" in verdict.reason
    assert decide(claim("psomas_googlenet_below_bn_inception"), rows[1:]).state == OPEN


@pytest.mark.parametrize(("worst", "state"), [(0.59, HOLDS), (0.5, FAILS)])
def test_the_spread_over_samplers(worst, state):
    losses = ("margin", "multi_similarity", "histogram", "npair", "proxy_nca", "norm_softmax", "triplet")
    rows = [
        row(loss, worst if sampler == "spc_r" else 0.6, sampler__name=sampler, noise=0.5 + 0.2 * i, data__name=data)
        for loss in losses
        for data in ("cub", "cars196")
        for i, sampler in enumerate(("spc", "spc_r", "ddm", "gc", "frd"))
    ]
    verdict = decide(claim("roth_samplers_small_cub_cars"), rows)
    assert verdict.state == state
    assert "140 comparisons" in verdict.reason


def test_one_loss_on_one_data_set_and_all_on_another():
    """ "Also on SOP and for histogram on CARS": the other losses on CARS do not matter."""
    losses = ("margin", "multi_similarity", "histogram", "npair", "norm_softmax", "triplet")

    def rows(worst):
        return [
            row(
                loss,
                worst.get((loss, data), 0.6) if sampler == "gc" else 0.6,
                sampler__name=sampler,
                data__name=data,
                noise=0.5 + 0.2 * i,
            )
            for loss in losses
            for data in ("sop", "cars196")
            for i, sampler in enumerate(("spc", "spc_r", "ddm", "gc", "frd"))
        ]

    one = claim("roth_samplers_small_sop")
    assert decide(one, rows({("margin", "cars196"): 0.5})).state == HOLDS
    assert decide(one, rows({("histogram", "cars196"): 0.5})).state == FAILS
    assert decide(one, rows({("npair", "sop"): 0.5})).state == FAILS


UNREGULARISED = [
    *(
        (loss, {})
        for loss in (
            "angular",
            "arcface",
            "contrastive",
            "generalized_lifted",
            "histogram",
            "npair",
            "multi_similarity",
            "proxy_nca",
            "quadruplet",
            "snr_triplet",
            "soft_triple",
            "norm_softmax",
        )
    ),
    *(("margin", {"loss__beta": beta}) for beta in (0.6, 1.2)),
    *(("triplet", {"miner__name": miner}) for miner in ("distance_weighted", "random", "semihard", "softhard")),
]


@pytest.mark.parametrize(("best", "state"), [(0.61, HOLDS), (0.7, FAILS)])
def test_the_best_less_the_mean(best, state):
    rows = [row(loss, best if more.get("loss__beta") == 1.2 else 0.6, **more) for loss, more in UNREGULARISED]
    verdict = decide(claim("roth_losses_saturate"), rows)
    assert verdict.state == state
    assert "of 18 comparisons" in verdict.reason
    assert state == HOLDS or verdict.measured == pytest.approx((best - 0.6) * 17 / 18 * 100, abs=0.3)


class TestRanks:
    def test_the_order_by_sums_of_ranks(self):
        one = claim("psomas_tournament_order")
        assert decide(one, twelve(noise=0)).state == HOLDS
        assert decide(one, twelve(noise=0, order=[*TEN[:-2], "npair", "triplet"])).state == FAILS
        assert decide(one, twelve(noise=0, seeds=2)).state == OPEN
        twice = [*twelve(noise=0), row("triplet", 0.2, loss__margin=0.7)]
        assert "of triplet it has several" in decide(one, twice).reason

    @staticmethod
    def placed(small, large, seeds=5, **more):
        """ArcFace at these ranks at 64 and 1024 dimensions."""
        rows = []
        for dim, place in ((64, small), (1024, large)):
            order = [loss for loss in TEN if loss != "arcface"]
            order.insert(place - 1, "arcface")
            rows += ladder(
                order=order, model__dim=dim, data__name="cars196", model__backbone="googlenet", seeds=seeds, **more
            )
        return rows

    @pytest.mark.parametrize(("small", "large", "state"), [(8, 3, HOLDS), (8, 6, FAILS), (8, 1, FAILS), (10, 3, FAILS)])
    @pytest.mark.parametrize("seeds", [3, 5])
    def test_a_rank_is_that_rank(self, small, large, state, seeds):
        """Third from the bottom is neither last nor first."""
        verdict = decide(claim("psomas_arcface_third_cars_1024"), self.placed(small, large, seeds, noise=0.2))
        assert (verdict.state, verdict.unit) == (state, "ranks")
        wrong = {6: large, 1: large, 10: small}
        if state == FAILS:
            assert verdict.measured == wrong[large if large != 3 else small]
            assert verdict.low <= verdict.measured <= verdict.high

    def test_neighbours_that_cannot_be_told_apart_leave_it_open(self):
        rows = self.placed(8, 3)
        close = next(one for one in rows if one.name == "proxy_nca" and one.spec["model.dim"] == 64)
        spec = {key.replace(".", "__"): value for key, value in close.spec.items() if key != "loss.name"}
        rows[rows.index(close)] = row("proxy_nca", 0.4601, noise=2.0, **spec)
        verdict = decide(claim("psomas_arcface_third_cars_1024"), rows)
        assert verdict.state == OPEN
        assert verdict.low < verdict.high


@pytest.mark.parametrize(("last", "state"), [(0.61, HOLDS), (0.9, FAILS)])
def test_gains_that_become_smaller(last, state):
    rows = [
        row(loss, level, model__dim=dim)
        for loss in TEN
        for dim, level in ((64, 0.4), (128, 0.5), (512, 0.6), (1024, last))
    ]
    verdict = decide(claim("psomas_size_gain_saturates"), rows)
    assert verdict.state == state
    assert verdict.measured == pytest.approx(10 - 100 * (last - 0.6))
    lacking = decide(claim("psomas_size_gain_saturates"), rows[:-1])
    assert (lacking.state, lacking.reason) == (OPEN, "the study lacks npair with model.dim=1024")


LOSSES = ("contrastive", "margin", "triplet", "multi_similarity", "arcface", "npair", "norm_softmax")


def correlated(sign, data=("cub", "cars196", "sop"), losses=LOSSES, **more):
    return [
        row(loss, {"recall@1": 0.4 + 0.02 * i, "train.rho": 1 + sign * 0.1 * i}, data__name=name, **more)
        for name in data
        for i, loss in enumerate(losses)
    ]


class TestCorrelations:
    @pytest.mark.parametrize(("sign", "state"), [(-1, HOLDS), (1, FAILS)])
    def test_over_methods(self, sign, state):
        verdict = decide(claim("roth_spectral_decay_correlates"), correlated(sign))
        assert (verdict.state, verdict.unit) == (state, "")
        assert np.sign(verdict.measured) == sign
        assert "over 7 methods" in verdict.reason

    def test_a_method_with_several_rows_is_one_point(self):
        """Four miners of one loss are no four methods."""
        four = [
            row("triplet", {"recall@1": 0.5 + 0.02 * i, "train.rho": 1 - 0.1 * i}, miner__name=miner, data__name=data)
            for i, miner in enumerate(("random", "semihard", "softhard", "distance_weighted"))
            for data in ("cub", "cars196", "sop")
        ]
        rest = [one for one in correlated(-1) if one.name != "triplet"]
        assert "over 7 methods" in decide(claim("roth_spectral_decay_correlates"), [*rest, *four]).reason

    def test_the_unit_is_the_method_not_the_seed(self):
        """A weak correlation that every seed repeats: over seeds it was certain, over seven methods it is nothing."""
        rho = dict(zip(LOSSES, (1.3, 1.1, 1.5, 1.2, 1.4, 1.0, 1.25), strict=True))
        rows = [
            row(loss, {"recall@1": 0.4 + 0.02 * i, "train.rho": rho[loss]}, data__name=data, seeds=5, noise=0.01)
            for data in ("cub", "cars196", "sop")
            for i, loss in enumerate(LOSSES)
        ]
        assert decide(claim("roth_spectral_decay_correlates"), rows).state == OPEN

    def test_fewer_than_three_seeds(self):
        verdict = decide(claim("roth_spectral_decay_correlates"), correlated(-1, seeds=2))
        assert (verdict.state, verdict.measured) == (OPEN, None)
        assert "at least three seeds" in verdict.reason


def test_any_of_several_is_enough():
    def study(lead):
        return [
            row(
                loss,
                {"recall@1": low, "recall@2": 0.9 + lead * ahead, "recall@4": 0.9, "recall@8": 0.9},
                model__backbone="bn_inception",
                model__dim=dim,
                noise=1 + ahead,
            )
            for loss, low, ahead in (("soft_triple", 0.6, 1), ("proxy_anchor", 0.65, 0))
            for dim in (64, 128, 512, 1024)
        ]

    one = claim("psomas_soft_triple_beats_pa_cub_bn")
    assert decide(one, study(0.02)).state == HOLDS
    assert decide(one, study(0.0)).state == OPEN
    behind = [replace(one, metrics={name: one.metrics["recall@1"] for name in one.metrics}) for one in study(0.0)]
    assert decide(one, behind).state == FAILS


class TestBothEvaluationsAndEveryMetric:
    METRICS = ("p@1", "r_precision", "map_at_r")

    def rows(self, joined=None, separated=None, data=("cub", "cars196")):
        """DRML ahead by two points, but for these differences of ProxyAnchor on CARS."""
        rows = []
        for name in data:
            for loss in ("triplet", "proxy_anchor", "cosface"):
                for method in ("drml", None):
                    odd = method == "drml" and (loss, name) == ("proxy_anchor", "cars196")
                    lead = 0.02 if method else 0.0
                    values = [
                        {m: 0.5 + (change.get(m, lead) if change and odd else lead) for m in self.METRICS}
                        for change in (separated, joined)
                    ]
                    more = {"data__name": name, "protocol__name": "mlrc", "method__name": method}
                    more["noise"] = 1 + lead * 50
                    plain, together = row(loss, values[0], folds=range(4), **more), row(loss, values[1], **more)
                    rows.append(replace(plain, joined=together.metrics))
        return rows

    def test_all_hold(self):
        verdict = decide(claim("drml_improves_mlrc"), self.rows())
        assert verdict.state == HOLDS
        assert "of 36 comparisons" in verdict.reason

    @pytest.mark.parametrize("metric", METRICS)
    def test_one_metric_of_one_evaluation_settles_it(self, metric):
        verdict = decide(claim("drml_improves_mlrc"), self.rows(joined={metric: -0.02}))
        assert verdict.state == FAILS
        assert f"on cars196, {metric}, concatenated" in verdict.reason
        assert decide(claim("drml_improves_mlrc"), self.rows(separated={metric: -0.02})).state == FAILS

    def test_one_data_set_is_not_enough(self):
        assert decide(claim("drml_improves_mlrc"), self.rows(data=["cub"])).state == OPEN


def test_another_row_may_be_the_best_at_every_metric():
    """ "A DRML row is the best": one at P@1, another one at MAP@R."""
    metrics = ("p@1", "r_precision", "map_at_r")
    others = [
        "contrastive",
        "proxy_nca_pp",
        "margin",
        "norm_softmax",
        "arcface",
        "fastap",
        "snr_contrastive",
        "multi_similarity",
        "soft_triple",
        "triplet",
        "proxy_anchor",
        "cosface",
    ]

    def rows(drml):
        made = [
            row(loss, dict.fromkeys(metrics, 0.5), miner__name=miner, **more)
            for more in places
            for loss in others
            for miner in ((None, "multi_similarity") if loss == "multi_similarity" else (None,))
        ]
        made += [
            row(loss, dict(zip(metrics, levels, strict=True)), method__name="drml", noise=2.0, **more)
            for more in places
            for loss, levels in drml.items()
        ]
        return [replace(one, joined=one.metrics) for one in made]

    places = [{"data__name": data, "protocol__name": "mlrc"} for data in ("cub", "cars196")]
    one = claim("drml_state_of_the_art_mlrc")
    ahead = {"triplet": (0.4, 0.4, 0.4), "proxy_anchor": (0.6, 0.4, 0.4), "cosface": (0.4, 0.6, 0.6)}
    assert decide(one, rows(ahead)).state == HOLDS
    assert decide(one, rows(ahead | {"cosface": (0.4, 0.6, 0.4)})).state == FAILS
    assert decide(one, rows(ahead | {"cosface": (0.4, 0.6, 0.5)})).state == OPEN


class TestOneFamily:
    def test_claims_of_one_page_are_corrected_together(self):
        """A lead that decides a claim by itself does not decide it among others that are open."""
        lead = [0.011, 0.009, 0.013, 0.007, -0.002]
        rows = [
            of_values("margin", {s: 0.5 + d for s, d in enumerate(lead)}),
            of_values("npair", dict.fromkeys(range(5), 0.5)),
            of_values("lifted_structure", {s: 0.5 + d for s, d in enumerate(lead[::-1])}),
        ]
        one, other = claim("psomas_margin_npair_below_4"), claim("psomas_margin_lifted_below_3")
        alone = decide(one, rows)
        assert alone.state == HOLDS
        together = decide_together([one, other], rows)
        assert [verdict.state for verdict in together] == [OPEN, OPEN]
        assert together[0].p == pytest.approx(2 * alone.p)

    def test_claims_that_are_not_tested_cost_nothing(self):
        rows = [
            row(loss, level, data__name="cars196", model__dim=512)
            for loss, level in (("multi_similarity", 0.52), ("proxy_anchor", 0.5))
        ]
        one = claim("psomas_ms_over_pa_cars_512")
        together = {entry.id: verdict for entry, verdict in zip(claims(), decide_together(claims(), rows), strict=True)}
        assert together[one.id].p == decide(one, rows).p
        assert sum(verdict.p is not None for verdict in together.values()) == 1

    def test_all_that_must_hold_cost_nothing_for_a_claim(self):
        """Nine leads that must all hold: each by its own test. One that is behind: corrected over the nine."""
        best = [0.011, 0.009, 0.013, 0.007, 0.0017]
        (condition,) = claim("psomas_proxy_anchor_wins").in_study["conditions"]
        nine = replace(claim("psomas_proxy_anchor_wins"), in_study={"conditions": [condition]})

        def rows(sign):
            others = [of_values(loss, {s: 0.6 - sign * d for s, d in enumerate(best)}) for loss in TEN[1:]]
            return [of_values("proxy_anchor", dict.fromkeys(range(5), 0.6)), *others]

        assert decide(nine, rows(1)).state == HOLDS
        assert decide(nine, rows(-1)).state == OPEN
