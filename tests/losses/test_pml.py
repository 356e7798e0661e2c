"""Losses against pytorch-metric-learning, where the definitions coincide (docs/definitions.md says where they do not):
values and gradients with respect to the embeddings, to 1e-5."""

import math

import pytest
import torch
from loss_cases import value_and_gradients
from pytorch_metric_learning import distances, reducers
from pytorch_metric_learning import losses as pml

from nearkin import losses
from nearkin.numerics import unit
from nearkin.pairs import Couples, Pairs

DIM, CLASSES = 12, 6


def given_proxies(loss, proxies):
    loss.proxies = torch.nn.Parameter(proxies.clone())
    return loss


PROXIES = torch.randn(CLASSES, DIM, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


CENTRES = torch.randn(3 * CLASSES, DIM, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


class AllCouples(torch.nn.Module):
    """Our losses draw one positive an anchor; theirs take every positive pair."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, z, y, tuples=None):
        return self.loss(z, y, Couples(*Pairs.of(z, y).positive.nonzero(as_tuple=True)))


class OnSphere(torch.nn.Module):
    """Their angular loss normalises anchors and positives, not negatives."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, z, y):
        return self.loss(unit(z), y)


def with_parameter(module, name, value):
    setattr(module, name, torch.nn.Parameter(value.clone()))
    return module


COINCIDE = {
    "contrastive": lambda: (losses.Contrastive(), pml.ContrastiveLoss()),
    "triplet": lambda: (losses.Triplet(squared=False, margin=0.05, reduction="mean_active"), pml.TripletMarginLoss()),
    "triplet, mean over all": lambda: (
        losses.Triplet(squared=False, margin=0.2),
        pml.TripletMarginLoss(margin=0.2, reducer=reducers.MeanReducer()),
    ),
    "lifted_structure": lambda: (losses.LiftedStructure(), pml.LiftedStructureLoss()),
    "generalized_lifted": lambda: (
        losses.GeneralizedLifted(nu=0.0),
        pml.GeneralizedLiftedStructureLoss(distance=distances.LpDistance(normalize_embeddings=False)),
    ),
    "angular": lambda: (
        AllCouples(losses.Angular(alpha=40.0, lam=1.0, npair=0.0, nu=0.0)),
        OnSphere(pml.AngularLoss()),
    ),
    "histogram": lambda: (losses.Histogram(nodes=101), pml.HistogramLoss(n_bins=100)),
    "margin": lambda: (losses.Margin(per_class=False), pml.MarginLoss(learn_beta=True)),
    "margin, a class": lambda: (losses.Margin(CLASSES), pml.MarginLoss(learn_beta=True, num_classes=CLASSES)),
    "snr_contrastive": lambda: (losses.SNRContrastive(), pml.SignalToNoiseRatioContrastiveLoss()),
    "snr_triplet": lambda: (
        losses.SNRTriplet(reg_weight=0.0),
        pml.TripletMarginLoss(margin=0.2, distance=distances.SNRDistance()),
    ),
    "nt_xent": lambda: (losses.NTXent(), pml.NTXentLoss()),
    "fastap": lambda: (losses.FastAP(), pml.FastAPLoss()),
    "softmax": lambda: (
        given_proxies(losses.Softmax(CLASSES, DIM), unit(PROXIES)),  # theirs normalises the class vectors alone
        with_parameter(
            pml.NormalizedSoftmaxLoss(
                CLASSES, DIM, temperature=1, distance=distances.DotProductSimilarity(normalize_embeddings=False)
            ),
            "W",
            PROXIES.T,
        ),
    ),
    "norm_softmax": lambda: (
        given_proxies(losses.NormSoftmax(CLASSES, DIM), PROXIES),
        with_parameter(pml.NormalizedSoftmaxLoss(CLASSES, DIM), "W", PROXIES.T),
    ),
    "cosface": lambda: (
        given_proxies(losses.CosFace(CLASSES, DIM), PROXIES),
        with_parameter(pml.CosFaceLoss(CLASSES, DIM), "W", PROXIES.T),
    ),
    "arcface": lambda: (
        given_proxies(losses.ArcFace(CLASSES, DIM, margin=math.radians(28.6), scale=64.0, monotone=True), PROXIES),
        with_parameter(pml.ArcFaceLoss(CLASSES, DIM), "W", PROXIES.T),
    ),
    "proxy_nca_pp": lambda: (
        given_proxies(losses.ProxyNCApp(CLASSES, DIM), PROXIES),
        with_parameter(pml.ProxyNCALoss(CLASSES, DIM, softmax_scale=9), "proxies", PROXIES),
    ),
    "soft_triple": lambda: (
        given_proxies(losses.SoftTriple(CLASSES, DIM, scale=20.0, tau=0.0, centres=3), CENTRES),
        with_parameter(
            pml.SoftTripleLoss(CLASSES, DIM, centers_per_class=3),
            "fc",
            CENTRES.view(3, CLASSES, DIM).transpose(0, 1).reshape(3 * CLASSES, DIM).T,
        ),
    ),
    "multi_similarity": lambda: (losses.MultiSimilarity(beta=50.0), pml.MultiSimilarityLoss()),
    "proxy_anchor": lambda: (
        given_proxies(losses.ProxyAnchor(CLASSES, DIM), PROXIES),
        with_parameter(pml.ProxyAnchorLoss(CLASSES, DIM), "proxies", PROXIES),
    ),
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")  # how pytorch-metric-learning indexes a tensor
@pytest.mark.parametrize("name", list(COINCIDE))
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_pytorch_metric_learning(name, seed):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(20, DIM, generator=generator, dtype=torch.float64)
    y = torch.arange(20) % 5  # class 5 has a proxy and no sample
    ours, theirs = COINCIDE[name]()
    value, (gradient, *_) = value_and_gradients(ours, z, y)
    leaf = z.clone().requires_grad_()
    their_value = theirs(leaf, y)
    (their_gradient,) = torch.autograd.grad(their_value, leaf)
    torch.testing.assert_close(value, their_value.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, their_gradient, rtol=1e-5, atol=1e-5)


def test_npair_equals_pytorch_metric_learning_for_the_same_pairs():
    z = torch.randn(10, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.arange(10) % 5
    theirs = pml.NPairsLoss(distance=distances.DotProductSimilarity(normalize_embeddings=False))
    ours = losses.NPair(pairing="class", nu=0.0)
    forward = Couples(torch.arange(5), torch.arange(5, 10))
    a, p = forward
    indices = (a, p, *Pairs.of(z, y).negative.nonzero(as_tuple=True))
    torch.testing.assert_close(ours(z, y, forward), theirs(z, y, indices), rtol=1e-5, atol=1e-5)
