"""Every registered loss, whatever it is: finite, permutation-invariant, O(B·M)."""

import copy

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from loss_cases import CASES, batch, case_id, make, miners_for, permuted, value_and_gradients
from memory import peak_bytes

from nearkin.errors import NearkinError
from nearkin.losses import ProxyLoss
from nearkin.pairs import Pairs
from nearkin.registry import LOSSES, hyperparameters

NAMES = LOSSES.names()
every_loss = pytest.mark.parametrize("name", NAMES)
every_case = pytest.mark.parametrize(("name", "params"), CASES, ids=case_id)


def hard_batches() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    z, y = batch(12, dtype=torch.float32)
    duplicates = z.clone()
    duplicates[6:] = z[:6]
    zeros = z.clone()
    zeros[::3] = 0
    return {
        "ordinary": (z, y),
        "duplicates": (duplicates, y),
        "all equal": (z[:1].repeat(8, 1), y[:8]),
        "opposite": (torch.cat([z[:4], -z[:4]]), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])),
        "one class": (z, torch.zeros_like(y)),
        "all singletons": (z[:4], torch.arange(4)),
        "one positive pair": (z[:5], torch.tensor([0, 0, 1, 2, 3])),
        "two classes": (z, torch.arange(12) % 2),
        "two alike": (z[:2], torch.tensor([1, 1])),
        "two unlike": (z[:2], torch.tensor([0, 1])),
        "one sample": (z[:1], torch.tensor([2])),
        "zero vectors": (zeros, y),
        "nothing but zeros": (torch.zeros(6, 6), y[:6]),
        "scaled by 1e4": (z * 1e4, y),
        "scaled by 1e-6": (z * 1e-6, y),
        "float16": (z.half(), y),
        "bfloat16": (z.bfloat16(), y),
        "float64": (z.double(), y),
        "one dimension on fire": (torch.eye(6)[0].repeat(6, 1) * torch.arange(1, 7)[:, None], y[:6]),
    }


@every_case
@pytest.mark.parametrize("kind", list(hard_batches()))
def test_finite_with_finite_gradient(name, params, kind):
    z, y = hard_batches()[kind]
    loss = make(name, params)
    for miner_name, miner in [("none", None), *miners_for(loss)]:
        tuples = miner(z, y) if miner is not None else None
        value, gradients = value_and_gradients(loss, z, y, tuples)
        assert value.dtype == (torch.float64 if kind == "float64" else torch.float32)
        assert value.isfinite(), miner_name
        assert all(g.isfinite().all() for g in gradients), miner_name


@every_loss
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_finite_on_drawn_batches(name, data):
    b = data.draw(st.integers(1, 9))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-3, 1e3, -7.0])
    z = torch.tensor(data.draw(st.lists(st.lists(values, min_size=6, max_size=6), min_size=b, max_size=b)))
    y = torch.tensor(data.draw(st.lists(st.integers(0, 3), min_size=b, max_size=b)))
    value, gradients = value_and_gradients(make(name), z, y)
    assert value.isfinite()
    assert all(g.isfinite().all() for g in gradients)


@every_case
def test_order_of_the_batch_does_not_matter_given_the_same_tuples(name, params):
    z, y = batch(14)
    loss = make(name, params).double()
    order = torch.randperm(14, generator=torch.Generator().manual_seed(1))
    for miner_name, miner in [("none", None), *miners_for(loss)]:
        mined = miner(z, y) if miner is not None else None
        tuples = loss.draw(Pairs.of(z, y), mined, torch.Generator().manual_seed(2))
        value, (gradient, *_) = value_and_gradients(loss, z, y, tuples)
        other, (other_gradient, *_) = value_and_gradients(loss, z[order], y[order], permuted(tuples, order))
        torch.testing.assert_close(other, value, rtol=1e-9, atol=1e-11, msg=miner_name)
        torch.testing.assert_close(other_gradient, gradient[order], rtol=1e-7, atol=1e-9, msg=miner_name)


@pytest.mark.parametrize("name", [n for n in NAMES if not list(make(n).parameters())])
def test_names_of_the_classes_do_not_matter(name):
    loss = make(name).double()
    z, y = batch()
    tuples = loss.draw(Pairs.of(z, y), None, torch.Generator().manual_seed(2))
    renamed = torch.tensor([907, -3, 12, 10**12])[y]
    torch.testing.assert_close(loss(z, renamed, tuples), loss(z, y, tuples), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", [n for n in NAMES if not issubclass(LOSSES[n], ProxyLoss)])
def test_nothing_valid_is_zero_with_a_graph(name):
    penalties = {"nu", "reg_weight"} & set(hyperparameters(LOSSES[name]))
    loss = make(name, dict.fromkeys(penalties, 0.0))
    z = torch.randn(1, 6, requires_grad=True)
    value = loss(z, torch.tensor([2]))
    value.backward()
    assert value.item() == 0
    assert z.grad is not None
    assert not z.grad.any()


@every_loss
@pytest.mark.parametrize("classes", [2, 32])
def test_memory_is_of_the_order_of_anchors_times_references(name, classes):
    """Twice the batch: four times the memory, not eight; also with two classes, where P and N are B/2 each."""

    def peak(b):
        z, y = torch.randn(b, 16), torch.arange(b) % classes
        loss = make(name, classes=classes, dim=16)
        return peak_bytes(lambda: value_and_gradients(loss, z, y))

    peak(64)  # first-call buffers of the libraries
    small, large = peak(128), peak(256)
    assert large <= 5 * small
    assert large <= 40 * 4 * 256 * 256  # forty float32 matrices; B³ alone would be 256


def test_proxies_that_repel_never_stand_in_memory_all_against_all():
    classes, z = 3000, torch.randn(8, 4)
    for via in ("proxies", "batch"):
        loss = make("proxy_repel", {"via": via}, classes=classes, dim=4)
        assert peak_bytes(lambda loss=loss: value_and_gradients(loss, z, torch.arange(8))) < classes**2 * 4 / 2


@every_loss
def test_references_that_are_the_batch_give_the_same_value(name):
    """A memory beside the batch, or the batches of other ranks, are only more references."""
    z, y = batch()
    loss = make(name).double()
    referring = Pairs(z, y, references=z, reference_labels=y, self_index=torch.arange(len(y)))
    tuples = loss.draw(Pairs.of(z, y), None, torch.Generator().manual_seed(2))
    if loss.needs_square:
        with pytest.raises(NearkinError, match="takes neither a memory nor ref_emb"):
            loss(referring)
    else:
        torch.testing.assert_close(loss(referring, None, tuples), loss(z, y, tuples), rtol=1e-9, atol=1e-9)
        more = Pairs(
            z, y, references=torch.cat([z, -z]), reference_labels=torch.cat([y, y]), self_index=torch.arange(len(y))
        )
        assert loss(more).isfinite()


@every_loss
def test_loss_moves_under_its_own_gradient(name):
    z, y = batch(16, seed=5)
    loss = copy.deepcopy(make(name)).double()
    tuples = loss.draw(Pairs.of(z, y), None, torch.Generator().manual_seed(2))
    value, (gradient, *_) = value_and_gradients(loss, z, y, tuples)
    step = 1e-4 / gradient.norm()
    assert loss(z - step * gradient, y, tuples) < value


@every_loss
def test_bad_input_is_refused_at_once(name):
    loss = make(name)
    z, y = batch(8, dtype=torch.float32)
    with pytest.raises(NearkinError, match=r"labels are torch\.float32"):
        loss(z, y.float())
    with pytest.raises(NearkinError, match="labels are missing"):
        loss(z)
    with pytest.raises(NearkinError, match="one label per embedding"):
        loss(z, y[:5])
    with pytest.raises(NearkinError, match=r"a batch is \(B, D\)"):
        loss(z[None], y)
    if isinstance(loss, ProxyLoss):
        with pytest.raises(NearkinError, match="5 dimensions"):
            loss(z[:, :5], y)
        with pytest.raises(NearkinError, match="num_classes=4"):
            loss(z, y + 4)
        with pytest.raises(NearkinError, match="num_classes=4"):
            loss(z, y - 4)


@every_loss
def test_every_bound_is_kept(name):
    """NaN is no hyper-parameter of any loss, and neither is a number far below zero, nor an unknown word."""
    for key, parameter in hyperparameters(LOSSES[name]).items():
        bad = {float: [float("nan"), -2.5], int: [-1], str: ["nonsense"]}.get(type(parameter.default), [])
        for value in bad:
            with pytest.raises(NearkinError, match=f"{key}="):
                make(name, {key: value})


def test_divided_repulsion_does_not_grow_with_the_batch():
    """Every sample twice: the printed sums double, their means stay; so does the gradient of the proxies."""
    z, y = batch(12)
    twice, labels = torch.cat([z, z]), torch.cat([y, y])
    values = {}
    for scale in ("batch", "mean"):
        loss = make("proxy_repel", {"scale": scale, "alpha": 2.0}).double()
        values[scale] = [loss.repel(loss.cosines(Pairs.of(x, k))[0]) for x, k in ((z, y), (twice, labels))]
    torch.testing.assert_close(*values["mean"], rtol=1e-12, atol=0)
    assert values["batch"][1] > values["batch"][0] * 1.2


def test_without_a_sum_over_the_batch_nothing_is_divided():
    with pytest.raises(NearkinError, match=r"scale=mean divides the sums of via=batch; via=proxies has none"):
        make("proxy_repel", {"via": "proxies", "scale": "mean"})
