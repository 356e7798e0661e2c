"""The method DRML: values, assignment, where gradients go, what it refuses."""

from pathlib import Path

import pytest
import torch
from oracles import drml as oracle

from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError
from nearkin.methods import DRML
from nearkin.models.drml import DRMLHead
from nearkin.pairs import Embedded
from nearkin.registry import METHODS, hyperparameters

PARTS, FEATURES, DIM, CLASSES = 3, 12, 6, 4
BASES = {
    "triplet": {"loss": ("triplet", {}), "miner": ("random", {})},
    "triplet hard": {"loss": ("triplet", {"margin": 1.0, "reduction": "mean_active"}), "miner": ("hard", {})},
    "margin": {"loss": ("margin", {}), "miner": ("distance_weighted", {})},
    "proxy_anchor": {"loss": ("proxy_anchor", {"alpha": 4.0, "delta": 0.2})},
    "cosface": {"loss": ("cosface", {"scale": 8.0})},
    "multi_similarity": {"loss": ("multi_similarity", {}), "miner": ("multi_similarity", {})},
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make(base="proxy_anchor", seed=0, regularisers=(), **weights):
    """A head and a method around it, stirred so that nothing is at its start."""
    torch.manual_seed(seed)

    def objective(dim):
        return build_objective(**BASES[base], regularisers=regularisers, num_classes=CLASSES, dim=dim)

    head = DRMLHead(FEATURES, DIM, parts=PARTS)
    branches = [objective(DIM // PARTS) for _ in range(PARTS)]
    method = DRML(objective(DIM), branches, FEATURES // PARTS, DIM // PARTS, **weights)
    for p in head.parameters():
        p.data += torch.randn(p.shape) * 0.3
    return head.double(), method.double()


def batch(size=24, seed=1):
    f = torch.randn(size, FEATURES, generator=seeded(seed), dtype=torch.float64)
    return f, torch.arange(size) % CLASSES


def gradients(value, tensors):
    """Zeros where nothing arrives."""
    tensors = list(tensors)
    if not tensors:
        return ()
    return torch.autograd.grad(value, tensors, retain_graph=True, allow_unused=True, materialize_grads=True)


def steered(method, choice, seed=2):
    """An `Embedded` whose sample i is reconstructed best by decoder choice[i]."""
    size = len(choice)
    nodes = torch.randn(size, PARTS, DIM // PARTS, generator=seeded(seed), dtype=torch.float64)
    nodes = (nodes / nodes.norm(dim=2, keepdim=True)).requires_grad_()
    away = torch.arange(PARTS) != torch.as_tensor(choice)[:, None]
    parts = (method.decoder(nodes) + away[:, :, None]).detach()
    z = torch.randn(size, DIM, generator=seeded(seed + 1), dtype=torch.float64).requires_grad_()
    return Embedded(z, {"nodes": nodes, "parts": parts})


# -- values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("seed", range(2))
def test_equals_the_loops_with_gradients(base, seed):
    head, method = make(base, seed, w_rep=3.0, w_rec=0.7)
    f, y = batch(seed=seed)
    f.requires_grad_()
    ours = method(head(f), y, seeded(5))
    theirs = oracle.drml(head, method, f, y.tolist(), seeded(5))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)
    inputs = [f, *head.parameters(), *(p for p in method.parameters() if p.requires_grad)]
    for a, b in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-8)


def test_every_branch_is_used_in_the_batch_of_these_tests():
    head, method = make()
    f, _ = batch()
    branches = [oracle.branch_of(oracle.errors_of(method, oracle.nodes_of(head, f_i), f_i)) for f_i in f]
    assert set(branches) == set(range(PARTS))


def test_weights_count_their_terms():
    embedded = steered(make()[1], [0, 0, 1, 1, 2, 2])
    y = torch.tensor([0, 1] * 3)
    value = {(a, b): make(w_rep=a, w_rec=b)[1](embedded, y) for a, b in [(0, 0), (1, 0), (0, 1), (10, 1)]}
    whole, reconstruction = value[1, 0] - value[0, 0], value[0, 1] - value[0, 0]
    assert whole > 0
    assert reconstruction.item() == pytest.approx((PARTS - 1) / PARTS)  # 1 for each decoder but the nearest, here 0
    torch.testing.assert_close(value[10, 1], value[0, 0] + 10 * whole + reconstruction)
    torch.testing.assert_close(make()[1](embedded, y), value[10, 1])  # the defaults


@pytest.mark.parametrize("base", ["triplet", "margin"])
def test_all_chance_comes_from_the_generator(base):
    head, method = make(base)
    f, y = batch()
    state = torch.get_rng_state()
    a, b, c = (method(head(f), y, seeded(s)) for s in (3, 3, 4))
    assert a == b != c
    assert torch.equal(torch.get_rng_state(), state)


# -- where gradients go --------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
def test_the_reconstruction_trains_the_decoders_and_nothing_else(base):
    f, y = batch()
    f.requires_grad_()
    found = []
    for w_rec in (0.0, 1.0):
        head, method = make(base, w_rec=w_rec)
        others = [f, *head.parameters(), *method.whole.parameters(), *method.branches.parameters()]
        others = [p for p in others if p.requires_grad]
        value = method(head(f), y, seeded())
        found.append((gradients(value, others), gradients(value, method.decoder.parameters())))
    (others_without, decoders_without), (others_with, decoders_with) = found
    assert all(torch.equal(a, b) for a, b in zip(others_without, others_with, strict=True))
    assert not any(g.any() for g in decoders_without)  # no other term reaches them
    assert all(g.any() for g in decoders_with)


def test_branch_losses_reach_neither_the_relation_module_nor_the_whole():
    head, method = make(w_rep=0, w_rec=0)
    f, y = batch()
    value = method(head(f), y)
    reached = dict(zip(dict(head.named_parameters()), gradients(value, head.parameters()), strict=True))
    assert {name for name, g in reached.items() if g.any()} == {"embed.weight", "embed.bias"}
    assert not any(g.any() for g in gradients(value, method.whole.parameters()))


@pytest.mark.parametrize("k", range(PARTS))
@pytest.mark.parametrize("base", ["proxy_anchor", "cosface", "margin", "triplet"])
def test_a_branch_reaches_its_own_embedder_and_parameters_alone(base, k):
    head, method = make(base, w_rep=0, w_rec=0)
    f, y = batch()
    with torch.no_grad():  # decoder k is the nearest for every sample
        method.decoder.weight.zero_()
        method.decoder.bias.fill_(100.0)
        method.decoder.bias[k] = 0
    value = method(head(f), y, seeded())
    (weight,) = gradients(value, [head.embed.weight])
    assert [bool(g.any()) for g in weight] == [j == k for j in range(PARTS)]
    for j, branch in enumerate(method.branches):
        assert all(bool(g.any()) == (j == k) for g in gradients(value, branch.parameters()))


def test_a_sample_counts_in_its_branch_alone():
    _, method = make(w_rep=0, w_rec=0)
    choice = [0, 0, 2, 1, 2, 2, 1, 0]
    embedded = steered(method, choice)
    (gradient,) = gradients(method(embedded, torch.arange(8) % CLASSES), [embedded.extras["nodes"]])
    assert torch.equal(gradient.any(2), torch.arange(PARTS) == torch.tensor(choice)[:, None])


def test_the_whole_embedding_moves_nodes_and_relations():
    head, method = make(w_rec=0)
    for branch in method.branches:
        branch.requires_grad_(False)
    f, y = batch()
    for gradient in gradients(method.whole(head(f), y), head.parameters()):
        assert gradient.any()


# -- objectives of its own -----------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["proxy_anchor", "cosface", "margin"])
def test_every_branch_has_parameters_of_its_own(base):
    _, method = make(base)
    (loss, decoder) = method.parameter_groups()
    assert (loss["name"], decoder["name"]) == ("loss", "decoder")
    assert loss["lr_factor"] == method.loss.lr_factor
    assert len({id(p) for p in loss["params"]}) == len(loss["params"]) == 1 + PARTS
    assert len({p.data_ptr() for p in loss["params"]}) == 1 + PARTS
    assert {id(p) for g in (loss, decoder) for p in g["params"]} == {id(p) for p in method.parameters()}


def test_a_base_without_parameters_leaves_the_decoders():
    (decoder,) = make("triplet")[1].parameter_groups()
    assert decoder["name"] == "decoder"
    assert decoder["lr_factor"] == 1.0


@pytest.mark.parametrize("k", range(PARTS))
def test_regularisers_act_in_every_branch(k):
    """All samples in branch k, no other term: only its own regulariser can make the difference."""
    y = batch()[1]
    for name, settings in (("norm", {"nu": 0.1}), ("rho", {"p_switch": 1.0})):
        _, plain = make("triplet", w_rep=0.0, w_rec=0.0)
        _, changed = make("triplet", w_rep=0.0, w_rec=0.0, regularisers=[(name, settings)])
        value = changed(steered(changed, [k] * len(y)), y, seeded())
        assert value.isfinite()
        assert value != plain(steered(plain, [k] * len(y)), y, seeded())


def test_active_is_that_of_the_whole():
    head, method = make("triplet")
    f, y = batch()
    method(head(f), y, seeded())
    assert method.active is method.whole.loss.active
    assert 0 <= method.active <= 1
    assert make("proxy_anchor")[1].active is None
    assert method.mix(8, 3) is None


# -- edges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("choice", [[0] * 8, [0] * 7 + [1], [2] + [1] * 7, [0, 1, 2], [1]], ids=str)
def test_branches_with_no_or_one_sample_give_zero(base, choice):
    _, method = make(base, w_rep=0, w_rec=0)
    embedded = steered(method, choice)
    y = torch.arange(len(choice)) % 2
    value = method(embedded, y, seeded())
    assert value.isfinite()
    assert value.requires_grad
    (gradient,) = gradients(value, [embedded.extras["nodes"]])
    assert gradient.isfinite().all()
    for k in range(PARTS):
        own = [i for i, c in enumerate(choice) if c == k]
        if len(own) < 2:
            assert not gradient[:, k].any()
            assert not any(g.any() for g in gradients(value, method.branches[k].parameters()))
    if max(choice.count(k) for k in range(PARTS)) < 2:
        assert value == 0


@pytest.mark.parametrize("base", BASES)
def test_one_class_is_finite(base):
    head, method = make(base)
    f, y = batch()
    value = method(head(f.requires_grad_()), y * 0, seeded())
    assert value.isfinite()
    assert gradients(value, [f])[0].isfinite().all()


def test_what_it_refuses():
    head, method = make()
    f, y = batch()
    with pytest.raises(NearkinError, match=r"set model\.head=drml"):
        method(Embedded(f), y)
    with pytest.raises(NearkinError, match=r"memory\.size does not go with method drml"):
        method(head(f), y, memory=object())
    with pytest.raises(NearkinError, match=r"memory\.size does not go with method drml"):
        method.check_memory()
    with pytest.raises(NearkinError, match=r"model\.parts=2: this drml was built for 3 parts"):
        method(DRMLHead(FEATURES, DIM, parts=2).double()(f), y)
    with pytest.raises(NearkinError, match="mixup does not go with method drml"):
        make(regularisers=[("mixup", {})])
    for weight in ("w_rep", "w_rec"):
        with pytest.raises(NearkinError, match=f"{weight}=-1: must be at least 0"):
            make(**{weight: -1})


def test_definitions_state_the_method_with_its_defaults():
    text = (Path(__file__).parents[2] / "docs" / "definitions.md").read_text()
    section = text[text.index("## DRML") : text.index("## Miners")]
    for key, parameter in hyperparameters(METHODS["drml"]).items():
        assert f"{key}={parameter.default}" in section
