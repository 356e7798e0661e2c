"""Losses against pytorch-metric-learning, where the definitions coincide (docs/definitions.md says where they do not):
values and gradients with respect to the embeddings, to 1e-5."""

import pytest
import torch
from loss_cases import value_and_gradients
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning import reducers

from nearkin import losses

DIM, CLASSES = 12, 6


def given_proxies(loss, proxies):
    loss.proxies = torch.nn.Parameter(proxies.clone())
    return loss


PROXIES = torch.randn(CLASSES, DIM, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def with_parameter(module, name, value):
    setattr(module, name, torch.nn.Parameter(value.clone()))
    return module


COINCIDE = {
    "contrastive": lambda: (losses.Contrastive(), pml.ContrastiveLoss()),
    "triplet": lambda: (
        losses.Triplet(squared=False, margin=0.05, reduction="mean_active"),
        pml.TripletMarginLoss(),
    ),
    "triplet, mean over all": lambda: (
        losses.Triplet(squared=False, margin=0.2),
        pml.TripletMarginLoss(margin=0.2, reducer=reducers.MeanReducer()),
    ),
    "multi_similarity": lambda: (losses.MultiSimilarity(beta=50.0), pml.MultiSimilarityLoss()),
    "proxy_anchor": lambda: (
        given_proxies(losses.ProxyAnchor(CLASSES, DIM), PROXIES),
        with_parameter(pml.ProxyAnchorLoss(CLASSES, DIM), "proxies", PROXIES),
    ),
}


@pytest.mark.parametrize("name", list(COINCIDE))
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_pytorch_metric_learning(name, seed):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(20, DIM, generator=generator, dtype=torch.float64)
    y = torch.arange(20) % 5                                        # class 5 has a proxy and no sample
    ours, theirs = COINCIDE[name]()
    value, (gradient, *_) = value_and_gradients(ours, z, y)
    leaf = z.clone().requires_grad_()
    their_value = theirs(leaf, y)
    (their_gradient,) = torch.autograd.grad(their_value, leaf)
    torch.testing.assert_close(value, their_value.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, their_gradient, rtol=1e-5, atol=1e-5)
