"""The shared arithmetic: derivatives by finite differences, plain formulas as oracles, edges."""

import pytest
import torch
from torch.autograd import gradcheck

from nearkin.numerics import (
    cosines,
    cross_entropy,
    log1p_exp,
    masked_lse,
    mean_norm,
    others_and_target,
    soft_histogram,
    sqrt0,
    unit,
)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


MASK = torch.rand(5, 7, generator=torch.Generator().manual_seed(1)) < 0.6
MASK[2] = False
LABELS = torch.tensor([0, 6, 3, 3, 1])


@pytest.mark.parametrize(
    "function",
    [
        unit,
        lambda x: cosines(x, random(4, 7, seed=3)),
        lambda x: cosines(random(4, 7, seed=3), x),
        lambda x: sqrt0(x.square()),
        mean_norm,
        lambda x: mean_norm(x, 2),
        lambda x: log1p_exp(masked_lse(x, MASK, 1)),
        lambda x: log1p_exp(masked_lse(x, MASK, 1, scale=-3.0) + 0.4),
        lambda x: masked_lse(x, MASK, 1, scale=5.0)[[0, 1, 3, 4]],
        lambda x: masked_lse(x, MASK, 0, scale=2.0),
        lambda x: others_and_target(x, LABELS, 4.0),
        lambda x: others_and_target(x, LABELS, 4.0, over=0),
        lambda x: cross_entropy(x, LABELS, 4.0),
        log1p_exp,
        lambda x: soft_histogram(x.sigmoid() * 8, MASK, ~MASK, 9),
    ],
)
def test_gradient_is_the_derivative(function):
    assert gradcheck(function, random(5, 7))


def test_cosines_of_zero_vectors_are_zero_with_a_finite_gradient():
    z, w = torch.zeros(2, 3, requires_grad=True), torch.zeros(4, 3, requires_grad=True)
    s = cosines(z, w)
    s.sum().backward()
    assert not s.any()
    assert z.grad.isfinite().all()
    assert w.grad.isfinite().all()


def test_sqrt0_has_no_gradient_at_zero():
    x = torch.tensor([0.0, 4.0, -1e-9], requires_grad=True)
    root = sqrt0(x)
    root.sum().backward()
    assert root.tolist() == [0, 2, 0]
    assert x.grad.tolist() == [0, 0.25, 0]


def test_masked_lse_equals_the_plain_formula_and_never_overflows():
    x = random(5, 7).detach()
    plain = torch.where(MASK, (3 * x).exp(), 0).sum(1).log()
    torch.testing.assert_close(masked_lse(x, MASK, 1, scale=3.0), plain)
    large = torch.full((5, 7), 1e4, requires_grad=True)
    value = log1p_exp(masked_lse(large, MASK, 1))
    value.sum().backward()
    assert value.isfinite().all()
    assert large.grad.isfinite().all()
    assert not large.grad[~MASK].any()


def test_an_empty_row_of_masked_lse_is_minus_infinity_and_log1p_exp_makes_it_zero():
    x = random(5, 7)
    assert masked_lse(x, MASK, 1)[2] == -torch.inf
    value = log1p_exp(masked_lse(x, MASK, 1))
    value.sum().backward()
    assert value[2] == 0
    assert not x.grad[2].any()


def test_cross_entropy_is_torchs():
    x = random(5, 7).detach()
    torch.testing.assert_close(cross_entropy(x, LABELS, 4.0), torch.nn.functional.cross_entropy(4 * x, LABELS))


def test_soft_histogram_spreads_each_entry_over_its_two_nodes():
    first, second = soft_histogram(
        torch.tensor([[0.0, 0.25, 2.0, 1.5]]),
        torch.tensor([[True, True, False, False]]),
        torch.tensor([[False, False, True, False]]),
        3,
    )
    assert first.tolist() == [[1.75, 0.25, 0.0]]
    assert second.tolist() == [[0.0, 0.0, 1.0]]
