"""Every registered loss against its loop-written twin in float64: values to 1e-12, gradients to 1e-8."""

import pytest
import torch
from loss_cases import CASES, batch, case_id, make, miners_for, value_and_gradients
from oracles.losses import ORACLES

from nearkin.pairs import Pairs
from nearkin.registry import LOSSES


@pytest.mark.parametrize("name", LOSSES.names())
def test_every_loss_has_an_oracle(name):
    assert name in ORACLES


@pytest.mark.parametrize(("name", "params"), CASES, ids=case_id)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_its_oracle(name, params, seed):
    if seed and params:
        z, y = batch(8, classes=2, seed=seed)  # variants once more, on two classes
    else:
        z, y = batch(10, seed=seed)
    loss = make(name, params, seed=seed).double()
    fitting = [(n, m) for n, m in miners_for(loss) if n in ("distance_weighted", "multi_similarity")]
    for miner_name, miner in [("none", None), *fitting]:
        generator = torch.Generator().manual_seed(seed)
        mined = miner(z, y, generator=generator) if miner is not None else None
        tuples = loss.draw(Pairs.of(z, y), mined, generator)
        value, gradients = value_and_gradients(loss, z, y, tuples)

        leaf = z.clone().requires_grad_()
        wanted = [leaf, *loss.parameters()]
        twin = ORACLES[name](loss, leaf, y.tolist(), tuples)
        assert value.dtype == torch.float64
        torch.testing.assert_close(value, twin.detach(), rtol=1e-12, atol=0, msg=f"{miner_name}: {value} != {twin}")
        twin_gradients = torch.autograd.grad(twin, wanted, allow_unused=True)
        for gradient, twin_gradient in zip(gradients, twin_gradients, strict=True):
            expected = torch.zeros_like(gradient) if twin_gradient is None else twin_gradient
            torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("name", "params"), CASES, ids=case_id)
def test_float64_stays_float64_beside_parameters_of_float32(name, params):
    """No constant, and nothing that is computed from the loss's own parameters, is rounded to float32 on the way."""
    z, y = batch(12)
    single, double = make(name, params), make(name, params).double()  # the same numbers: float32 is exact in float64
    for miner_name, miner in [("none", None), *miners_for(double)]:
        mined = miner(z, y, generator=torch.Generator().manual_seed(0)) if miner is not None else None
        tuples = double.draw(Pairs.of(z, y), mined, torch.Generator().manual_seed(0))
        value = single(z, y, tuples)
        assert value.dtype == torch.float64
        torch.testing.assert_close(value, double(z, y, tuples), rtol=1e-14, atol=0, msg=miner_name)
