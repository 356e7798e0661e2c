"""Objective: loss, miner and regularisers together; components of another library; mixup through any stages."""

import pytest
import torch
from torch import nn

from nearkin import losses, miners, regularisers
from nearkin.engine.objective import Objective, build_objective
from nearkin.errors import NearkinError
from nearkin.pairs import Embedded, Pairs, Triplets
from nearkin.registry import LOSSES, MINERS

Z = torch.randn(16, 8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(16) // 4


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def build(loss, miner=None, regularisers=(), classes=4, dim=8):
    def pair(part):
        return part if isinstance(part, tuple) else (part, {})

    return build_objective(
        loss=pair(loss),
        miner=pair(miner) if miner else None,
        regularisers=[pair(r) for r in regularisers],
        num_classes=classes,
        dim=dim,
    )


@pytest.mark.parametrize("loss", LOSSES.names())
@pytest.mark.parametrize("miner", MINERS.names())
def test_every_loss_takes_a_miner_or_refuses_it_by_name(loss, miner):
    fits = MINERS[miner].gives in LOSSES[loss].accepts
    settings = {"margin": 0.2} if miner == "semihard" else {}
    if fits:
        assert build(loss, (miner, settings))(Z, Y, seeded()).isfinite()
    else:
        with pytest.raises(NearkinError, match="miners that fit"):
            build(loss, (miner, settings))


def test_objective_is_loss_of_mined_tuples():
    objective = Objective(losses.Triplet(), miners.Random())
    expected = losses.Triplet()(Z, Y, miners.Random()(Z, Y, generator=seeded(3)))
    assert objective(Embedded(Z), Y, seeded(3)) == expected
    assert objective(Pairs.of(Z, Y), Y, seeded(3)) == expected


def test_semihard_takes_the_margin_of_the_loss():
    assert build(("triplet", {"margin": 0.6}), "semihard").miner.margin == 0.6
    with pytest.raises(NearkinError, match="no margin to share"):
        build("contrastive", "semihard")


def test_parameter_groups():
    (group,) = build("proxy_anchor").parameter_groups()
    assert (group["name"], group["lr_factor"]) == ("loss", 100.0)
    assert [p.shape for p in group["params"]] == [(4, 8)]
    assert build("triplet").parameter_groups() == []
    assert build(("margin", {"learn_beta": False})).parameter_groups() == []
    assert set(build("margin").state_dict()) == {"loss.beta"}


def test_unknown_settings_are_refused():
    with pytest.raises(NearkinError, match="Triplet has no 'gamma'; it has: margin, squared, reduction"):
        build(("triplet", {"gamma": 1}))
    with pytest.raises(NearkinError, match="unknown loss 'tripletz'"):
        build("tripletz")


# -- regularisers --------------------------------------------------------------------------------------------


def test_norm_adds_the_mean_norm():
    plain, penalised = build("triplet"), build("triplet", regularisers=[("norm", {"nu": 0.1})])
    assert penalised(Z, Y) == pytest.approx(float(plain(Z, Y) + 0.1 * Z.norm(dim=1).mean()))
    squared = build("triplet", regularisers=[("norm", {"nu": 0.1, "power": 2})])
    assert squared(Z, Y) == pytest.approx(float(plain(Z, Y) + 0.1 * Z.square().sum(1).mean()))


def test_rho_switches_its_share_of_triplets_to_anchor_anchor_positive():
    pairs = Pairs.of(Z, Y)
    triplets = miners.Random()(Z, Y, generator=seeded())
    changed = 0
    for seed in range(60):
        switched = regularisers.Rho(p_switch=0.3).change(triplets, pairs, seeded(seed))
        assert torch.equal(switched.anchor, triplets.anchor)
        new = switched.positive != triplets.positive
        assert torch.equal(switched.positive[new], switched.anchor[new])
        assert pairs.positive[switched.anchor[new], switched.negative[new]].all()
        assert torch.equal(switched.negative[~new], triplets.negative[~new])
        changed += int(new.sum())
    assert changed / (60 * 16) == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(("p", "same"), [(0.0, True), (1.0, False)])
def test_rho_at_its_ends(p, same):
    triplets = miners.Random()(Z, Y, generator=seeded())
    switched = regularisers.Rho(p_switch=p).change(triplets, Pairs.of(Z, Y), seeded())
    assert torch.equal(switched.positive, triplets.positive) is same
    assert same or torch.equal(switched.positive, triplets.anchor)


@pytest.mark.parametrize("loss", ["contrastive", "triplet", "margin", "snr_triplet"])
def test_rho_values_are_those_of_the_switched_formula(loss):
    """(a, a, p') leaves [γ - d]₊ of contrastive, [γ - d²]₊ of triplet, [γ + β - d]₊ of margin, [γ - SNR]₊ of SNR."""
    z = Z.double() + 2 * torch.nn.functional.one_hot(Y, 8)  # near enough for the hinges to be active
    a = torch.arange(16)
    p = a // 4 * 4 + (a + 1) % 4
    built = build((loss, {"reg_weight": 0.0} if loss == "snr_triplet" else {})).loss.double()
    e = z / z.norm(dim=1, keepdim=True)
    d = (e[a] - e[p]).norm(dim=1)
    snr = (e[a] - e[p]).var(dim=1) / e[a].var(dim=1)

    def over_active(x):
        return x.relu().sum() / (x > 0).sum().clamp_min(1)

    expected = {
        "contrastive": (1 - d).relu().mean(),
        "triplet": (0.2 - d.square()).relu().mean(),
        "margin": over_active(1.4 - d),
        "snr_triplet": over_active(0.2 - snr),
    }[loss]
    assert built(z, Y, Triplets(a, a, p)).item() == pytest.approx(expected.item(), abs=1e-6)


def test_rho_needs_triplets():
    with pytest.raises(NearkinError, match="changes the Triplets of a miner; no miner was set"):
        build("triplet", regularisers=["rho"])
    with pytest.raises(NearkinError, match="changes the Triplets"):
        build("multi_similarity", "multi_similarity", ["rho"])
    with pytest.raises(NearkinError, match=r"p_switch=1\.2"):
        regularisers.Rho(p_switch=1.2)


STAGES = [nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 8)]


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("name", ["triplet", "norm_softmax", "multi_similarity"])
def test_mixup_at_any_depth_is_two_weighted_losses_on_mixed_embeddings(depth, name):
    x = torch.randn(16, 5, generator=seeded(1))
    objective = build(name, regularisers=[("mixup", {"depth": depth})])
    mix = objective.mix(16, stages=len(STAGES), generator=seeded(2))
    assert mix.depth == depth
    h = x
    for level, stage in enumerate(STAGES):
        h = stage(mix(level, h))
    value = objective(Embedded(h, mix=mix), Y, seeded())

    h = x
    for level, stage in enumerate(STAGES):  # by hand, sample after sample
        if level == depth:
            h = torch.stack([mix.weight * h[i] + (1 - mix.weight) * h[mix.order[i]] for i in range(16)])
        h = stage(h)
    expected = mix.weight * objective.loss(h, Y) + (1 - mix.weight) * objective.loss(h, Y[mix.order])
    assert float(value) == pytest.approx(float(expected), rel=1e-5)


def test_mixup_draws_depths_weights_and_permutations_from_the_generator():
    mixup = regularisers.Mixup()
    mixes = [mixup.mix(8, 4, seeded(s)) for s in range(200)]
    assert {m.depth for m in mixes} == {0, 1, 2, 3}
    weights = torch.tensor([m.weight for m in mixes])
    assert weights.mean() == pytest.approx(0.5, abs=0.05)  # Beta(2, 2): mean 1/2, variance 1/20
    assert weights.var() == pytest.approx(0.05, abs=0.015)
    again = mixup.mix(8, 4, seeded(7))
    assert (again.weight, again.depth) == (mixes[7].weight, mixes[7].depth)
    assert torch.equal(again.order, mixes[7].order)
    with pytest.raises(NearkinError, match="depth=4"):
        regularisers.Mixup(depth=4).mix(8, 4)


def test_without_mixup_there_is_nothing_to_mix():
    assert build("triplet").mix(16, stages=3) is None


# -- another library's parts ---------------------------------------------------------------------------------

PML = "pytorch_metric_learning"


def test_a_foreign_loss_by_its_path():
    from pytorch_metric_learning.losses import CircleLoss

    objective = build((f"{PML}.losses.CircleLoss", {"m": 0.3}))
    assert objective(Z, Y) == CircleLoss(m=0.3)(Z, Y)
    assert objective.parameter_groups() == []


def test_a_foreign_loss_gets_classes_and_width_and_its_parameters_train():
    objective = build((f"{PML}.losses.ArcFaceLoss", {"scale": 16}), classes=4, dim=8)
    (group,) = objective.parameter_groups()
    assert [p.shape for p in group["params"]] == [(8, 4)]
    objective(Z, Y).backward()
    assert group["params"][0].grad.any()


def test_a_foreign_default_stays_its_authors():
    assert len(build(f"{PML}.losses.MarginLoss").loss.module.beta) == 1  # num_classes=None there: one β


@pytest.mark.parametrize(
    ("loss", "miner"),
    [
        (f"{PML}.losses.TripletMarginLoss", f"{PML}.miners.TripletMarginMiner"),
        ("triplet", f"{PML}.miners.TripletMarginMiner"),
        (f"{PML}.losses.TripletMarginLoss", "distance_weighted"),
        (f"{PML}.losses.MultiSimilarityLoss", "multi_similarity"),
        ("multi_similarity", f"{PML}.miners.MultiSimilarityMiner"),
    ],
)
def test_foreign_and_own_parts_mix(loss, miner):
    value = build(loss, miner)(Z, Y, seeded())
    assert value.isfinite()
    assert value > 0


def test_a_foreign_miner_gives_what_it_gives():
    from pytorch_metric_learning import losses as pml
    from pytorch_metric_learning import miners as pml_miners

    objective = build(f"{PML}.losses.MultiSimilarityLoss", f"{PML}.miners.MultiSimilarityMiner")
    expected = pml.MultiSimilarityLoss()(Z, Y, pml_miners.MultiSimilarityMiner()(Z, Y))
    assert float(objective(Z, Y)) == pytest.approx(float(expected))
    with pytest.raises(NearkinError, match="gives PairMasks"):
        build("triplet", f"{PML}.miners.MultiSimilarityMiner")


def test_a_foreign_miner_draws_from_the_generator_of_the_step():
    objective = build("margin", f"{PML}.miners.DistanceWeightedMiner")
    before = torch.get_rng_state()
    assert objective(Z, Y, seeded(1)) == objective(Z, Y, seeded(1))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_foreign_part_with_wrong_settings_is_refused():
    with pytest.raises(NearkinError, match="TripletMarginMiner cannot be built"):
        build("triplet", (f"{PML}.miners.TripletMarginMiner", {"nonsense": 1}))
