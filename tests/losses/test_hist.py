"""HIST: reference values, every step against the loop-written one, where gradients flow, ablations."""

import pytest
import torch
from loss_cases import batch, make, value_and_gradients
from oracles import hist as loops
from reference_batch import PROXIES, Y, Z
from torch import nn

from nearkin import losses
from nearkin.errors import NearkinError
from nearkin.pairs import Pairs

GRAPHS = ("soft", "positives", "attention", "none")


def steps(loss, z, y):
    """δ and G of a batch."""
    pairs = Pairs.of(z, y)
    delta = loss.distances(pairs)
    return delta, loss.propagation(pairs.z, delta, y)


def stacked(rows):
    return torch.stack([torch.stack(list(row)) for row in rows])


def gradients_of(loss, z, y):
    """Name -> gradient; None where nothing flows."""
    names, wanted = zip(*loss.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss(z, y), wanted, allow_unused=True), strict=True))


def test_reference_values():
    loss = losses.HIST(5, 4, alpha=1.1).double()  # the values of H and G were computed at α = 1.1
    c, j = torch.arange(5.0, dtype=torch.float64)[:, None], torch.arange(1.0, 5.0, dtype=torch.float64)
    loss.proxies = nn.Parameter(PROXIES.clone())
    loss.v = nn.Parameter((1.2 * torch.sin(c + 1 + 2 * j)).clamp(0, 6))
    m = nn.functional.layer_norm(Z, (4,))
    delta, g = steps(loss, m, Y)
    assert nn.functional.cross_entropy(-loss.tau * delta, Y).item() == pytest.approx(4.421049, abs=1e-5)
    assert loss.incidence(delta, Y)[0].tolist() == pytest.approx([1.0, 0.024694, 0.095942, 0.057758], abs=1e-5)
    assert g.trace().item() == pytest.approx(2.012347, abs=1e-5)
    assert g[0, 1].item() == pytest.approx(0.184853, abs=1e-5)
    assert torch.linalg.eigvalsh(g)[-1].item() == pytest.approx(1.0, abs=1e-5)
    loss.lam = 0.0
    assert loss(m, Y).item() == pytest.approx(4.421049, abs=1e-5)


@pytest.mark.parametrize("variance", [True, False])
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_step_equals_its_loop(graph, variance):
    loss = make("hist", {"graph": graph, "variance": variance, "hidden": 7, "alpha": 0.7, "tau": 3.0}).double()
    z, y = batch(9, classes=3)
    labels = y.tolist()
    delta, g = steps(loss, z, y)
    close = {"rtol": 1e-8, "atol": 1e-8}
    torch.testing.assert_close(delta, stacked(loops.delta(loss, z)), **close)
    if graph in ("soft", "positives"):
        torch.testing.assert_close(loss.incidence(delta, y), stacked(loops.incidence(loss, z, labels)), **close)
    torch.testing.assert_close(g, stacked(loops.propagation(loss, z, labels)), **close)
    torch.testing.assert_close(loss.hgnn(z, g), torch.stack(loops.layers(loss, z, list(g))), **close)
    whole, loss.lam = loss(z, y), 0.0
    torch.testing.assert_close(loss(z, y), loops.distribution_loss(loss, z, labels), **close)
    assert whole > loss(z, y)


@pytest.mark.parametrize("graph", GRAPHS)
def test_gradients_equal_finite_differences(graph):
    loss = make("hist", {"graph": graph, "hidden": 5}).double()
    z, y = batch(7, classes=3)
    _, (of_z, *_) = value_and_gradients(loss, z, y)
    of_parameters = gradients_of(loss, z, y)
    generator = torch.Generator().manual_seed(1)
    for tensor, gradient in [(z, of_z), *((p, of_parameters[n]) for n, p in loss.named_parameters())]:
        way = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        sides = []
        for sign in (1, -1):
            tensor.data.add_(way, alpha=sign * 1e-6)
            sides.append(loss(z, y).item())
            tensor.data.sub_(way, alpha=sign * 1e-6)
        assert (sides[0] - sides[1]) / 2e-6 == pytest.approx((gradient * way).sum().item(), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("graph", ["soft", "positives"])
def test_the_largest_eigenvalue_of_g_is_one(graph, seed):
    loss = make("hist", {"graph": graph}, seed=seed).double()
    z, y = batch(11, seed=seed)
    _, g = steps(loss, z, y)
    values = torch.linalg.eigvalsh(g)
    assert values[-1].item() == pytest.approx(1, abs=1e-12)
    assert values[0] > -1e-12
    torch.testing.assert_close(g, g.T)


def test_positives_average_within_classes():
    loss = make("hist", {"graph": "positives"}).double()
    z, y = batch(11)
    _, g = steps(loss, z, y)
    same = (y[:, None] == y).double()
    torch.testing.assert_close(g, same / same.sum(1, keepdim=True))


def test_attention_weighs_all_samples_of_the_batch_and_ignores_their_labels():
    loss = make("hist", {"graph": "attention"}).double()
    z, y = batch(11)
    _, g = steps(loss, z, y)
    assert (g > 0).all()
    torch.testing.assert_close(g.sum(1), torch.ones(11, dtype=torch.float64))
    torch.testing.assert_close(steps(loss, z, (y + 1) % 4)[1], g, rtol=0, atol=0)


def test_no_graph_is_a_plain_network_with_cross_entropy():
    loss = make("hist", {"graph": "none", "distribution_loss": False}).double()
    z, y = batch(11)
    network = nn.Sequential(loss.theta1, loss.bn, nn.LeakyReLU(0.1), loss.theta2)
    torch.testing.assert_close(loss(z, y), nn.functional.cross_entropy(network(z), y))
    assert [n for n, g in gradients_of(loss, z, y).items() if g is None] == ["proxies", "v"]


def test_the_graph_carries_gradients_to_means_variances_and_embeddings():
    """Without L_D, means and variances learn through H alone."""
    z, y = batch(11)
    soft = gradients_of(make("hist", {"distribution_loss": False}).double(), z, y)
    assert soft["proxies"].any()
    assert soft["v"].any()
    hard = gradients_of(make("hist", {"distribution_loss": False, "graph": "positives"}).double(), z, y)
    assert hard["proxies"] is None
    assert hard["v"] is None
    loss = make("hist").double()
    leaf = z.clone().requires_grad_()
    delta = loss.distances(Pairs.of(leaf, y))
    fixed = loss.propagation(z, delta, y)  # the embedding reaches G through δ alone
    assert torch.autograd.grad(loss.hgnn(z, fixed).square().sum(), leaf)[0].any()


def test_variances_learn_between_their_bounds_only():
    loss = make("hist").double()
    z, y = batch(11)
    gradient = gradients_of(loss, z, y)["v"]
    inside = (loss.v > 0) & (loss.v < 6)
    assert inside.any()
    assert torch.equal(gradient != 0, inside)
    assert 1 <= loss.variances().min() <= loss.variances().max() <= torch.exp(torch.tensor(6.0))


def test_with_proxies_there_is_no_variance_and_the_distance_is_that_of_the_sphere():
    loss = make("hist", {"variance": False}).double()
    z, y = batch(11)
    assert loss.v is None
    assert (loss.variances() == 1).all()
    cosines = nn.functional.cosine_similarity(z[:, None], loss.proxies, dim=2)
    torch.testing.assert_close(loss.distances(Pairs.of(z, y)), 2 - 2 * cosines)


def test_one_class_in_the_batch_is_one_hyperedge():
    loss = make("hist").double()
    z, y = batch(6)[0], torch.full((6,), 2)
    delta, g = steps(loss, z, y)
    assert loss.incidence(delta, y).tolist() == [[1.0]] * 6
    torch.testing.assert_close(g, torch.full((6, 6), 1 / 6, dtype=torch.float64))
    assert loss(z, y).isfinite()


def test_one_sample_has_no_network_term():
    z, y = batch(1)
    loss = make("hist").double()
    torch.testing.assert_close(loss(z, y), nn.functional.cross_entropy(-16 * loss.distances(Pairs.of(z, y)), y))
    leaf = z.clone().requires_grad_()
    value = make("hist", {"distribution_loss": False}).double()(leaf, y)
    value.backward()
    assert value.item() == 0
    assert not leaf.grad.any()


def test_one_class_of_all_is_refused():
    with pytest.raises(NearkinError, match="num_classes=1: a proxy loss needs at least 2 classes"):
        losses.HIST(1, 8)


def test_a_sample_at_its_mean_has_distance_zero_also_in_single_precision():
    loss = make("hist", classes=20, dim=64)
    delta = loss.distances(Pairs.of(loss.proxies.detach() * 3, torch.arange(20)))
    assert delta.diagonal().max() < 1e-6
    assert (delta >= 0).all()


def test_mixed_precision_does_not_reach_the_loss():
    loss = make("hist")
    z, y = batch(12, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(z, y)
    assert torch.equal(inside, loss(z, y))


def test_the_loss_keeps_no_state_but_its_parameters():
    loss = make("hist")
    z, y = batch(12, dtype=torch.float32)
    assert not list(loss.buffers())
    assert torch.equal(loss(z, y), loss(z, y))
    assert torch.equal(loss(z, y), loss.eval()(z, y))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("variance", [True, False])
def test_two_groups_hold_every_parameter_once_at_rates_of_their_own(graph, variance):
    loss = make("hist", {"graph": graph, "variance": variance})
    distributions, hgnn = loss.parameter_groups()
    assert (distributions["name"], distributions["lr"]) == ("distributions", 0.05)
    assert (hgnn["name"], hgnn["lr"]) == ("hgnn", 5e-4)
    assert [id(p) for p in distributions["params"]] == [id(p) for p in (loss.proxies, loss.v) if p is not None]
    held = [id(p) for p in distributions["params"] + hgnn["params"]]
    assert sorted(held) == sorted(id(p) for p in loss.parameters())


def test_means_and_log_variances_start_kaiming_normal_by_classes():
    loss = losses.HIST(200, 512)
    for parameter in (loss.proxies, loss.v):
        assert parameter.std().item() == pytest.approx((2 / 200) ** 0.5, rel=0.02)
