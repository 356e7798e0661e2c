"""Losses on the reference batch."""

import math

import pytest
import torch
from reference_batch import CENTRES, COUPLES, PROXIES, QUADRUPLETS, TRIPLETS, Y, Z

from nearkin import losses, miners
from nearkin.pairs import Couples, Pairs, Quadruplets


def test_the_batch_is_the_reference_batch():
    pairs = Pairs.of(Z, Y)
    assert pairs.e[0].tolist() == pytest.approx([0.48797, -0.07461, -0.580726, -0.647361], abs=1e-5)
    assert losses.ProxyAnchor(5, 4).num_classes == 5
    unit = PROXIES[0] / PROXIES[0].norm()
    assert unit.tolist() == pytest.approx([0.42163, -0.259145, -0.694666, -0.522026], abs=1e-5)
    assert int((pairs.positive.sum(1) * pairs.negative.sum(1)).sum()) == 54


def with_proxies(loss):
    loss.proxies = torch.nn.Parameter(PROXIES.clone())
    return loss


def with_centres(loss):
    by_centre = CENTRES.view(5, 2, 4).transpose(0, 1).reshape(10, 4)  # row k·C + c
    loss.proxies = torch.nn.Parameter(by_centre.clone())
    return loss


MS = miners.MultiSimilarity()
REFERENCES = {
    "contrastive, triplets": (1.162318, losses.Contrastive(), TRIPLETS),
    "contrastive, all pairs": (1.435873, losses.Contrastive(), None),
    "triplet, squared": (0.009275, losses.Triplet(), TRIPLETS),
    "triplet, unsquared": (0.053107, losses.Triplet(squared=False), TRIPLETS),
    "triplet, all": (0.322472, losses.Triplet(squared=False, margin=0.1, reduction="mean_active"), None),
    # [s_an - s_ap + 0.1]₊ is half of [d_ap² - d_an² + 0.2]₊
    "triplet, similarity": (2 * 0.367048, losses.Triplet(margin=0.2, reduction="mean_active"), None),
    "contrastive, similarity": (-0.024552, losses.Contrastive(form="similarity"), None),
    # the same as pytorch-metric-learning's on similarities, pos_margin 1 and neg_margin 0.5
    "contrastive, cosine": (0.951262, losses.Contrastive(form="cosine", neg_margin=0.5), None),
    "lifted_structure": (5.055794, losses.LiftedStructure(), None),
    "generalized_lifted": (2.994678, losses.GeneralizedLifted(nu=0.0), None),
    "generalized_lifted, norm": (2.994678 + 0.006, losses.GeneralizedLifted(), None),
    "generalized_lifted, square": (2.994678 + 0.007982, losses.GeneralizedLifted(reg_power=2), None),
    "lifted_similarity": (16.395227, losses.LiftedSimilarity(), None),
    "lifted_weighted": (0.895128, losses.LiftedWeighted(), MS(Z, Y)),
    "npair": (1.736737 + 0.006, losses.NPair(), Couples(*COUPLES)),
    "npair, class": (1.104745, losses.NPair(pairing="class", nu=0.0), Couples(*COUPLES[:, [0, 3, 5]])),
    "angular": (2.185283, losses.Angular(lam=1.0, npair=0.0, nu=0.0), Couples(*COUPLES)),
    "angular, whole": (2 * 2.185283 + 1.736737 + 0.006, losses.Angular(), Couples(*COUPLES)),
    "arcface": (5.591616, with_proxies(losses.ArcFace(5, 4)), None),
    "arcface, 28.6°": (
        22.106277,
        with_proxies(losses.ArcFace(5, 4, margin=math.radians(28.6), scale=64.0, monotone=True)),
        None,
    ),
    "cosface": (17.335164, with_proxies(losses.CosFace(5, 4)), None),
    "norm_softmax": (2.511449, with_proxies(losses.NormSoftmax(5, 4)), None),
    "softmax": (1.010057, with_proxies(losses.Softmax(5, 4)), None),
    "histogram": (0.298578, losses.Histogram(), None),
    "histogram, 11 nodes": (0.33893, losses.Histogram(nodes=11), None),
    "margin": (0.348105, losses.Margin(4), TRIPLETS),
    "margin, one β": (0.348105, losses.Margin(per_class=False), TRIPLETS),
    "margin, by triplets": (0.46414, losses.Margin(4, divisor="active_triplets"), TRIPLETS),
    "margin, similarity": (0.50715, losses.Margin(form="similarity", per_class=False, margin=0.5, beta=0.28), TRIPLETS),
    "proxy_nca": (-4.827906, with_proxies(losses.ProxyNCA(5, 4)), None),
    "proxy_nca_pp": (2.266161, with_proxies(losses.ProxyNCApp(5, 4)), None),
    "quadruplet": (0.880029, losses.Quadruplet(), Quadruplets(*QUADRUPLETS)),
    "snr_triplet": (1.176259, losses.SNRTriplet(reg_weight=0.0), TRIPLETS),
    "snr_triplet, regularised": (1.176259 + 0.005 * 0.673466, losses.SNRTriplet(), TRIPLETS),
    "snr_contrastive": (2.241372, losses.SNRContrastive(), None),
    "soft_triple": (0.983676, with_centres(losses.SoftTriple(5, 4, scale=20.0, tau=0.0)), None),
    "soft_triple, spread": (0.983676 + 0.329524, with_centres(losses.SoftTriple(5, 4, scale=20.0, tau=1.0)), None),
    "nt_xent": (4.970136, losses.NTXent(), None),
    "fastap": (0.597889, losses.FastAP(), None),
    "proxy_repel, proxies": (12.243086, with_proxies(losses.ProxyRepel(5, 4, via="proxies")), None),
    "proxy_repel, batch": (20.531654, with_proxies(losses.ProxyRepel(5, 4)), None),
    "multi_similarity, no miner": (0.725722, losses.MultiSimilarity(beta=50.0), None),
    "multi_similarity, miner": (0.759905, losses.MultiSimilarity(), MS(Z, Y)),
    "multi_similarity, official": (0.664917, losses.MultiSimilarity(divisor="batch"), MS(Z, Y)),
    "multi_similarity, Psomas and MLRC": (
        0.664521,
        losses.MultiSimilarity(beta=50.0, divisor="batch"),
        miners.MultiSimilarity(one_sided=True)(Z, Y),
    ),
    "proxy_anchor": (17.52403, with_proxies(losses.ProxyAnchor(5, 4)), None),
}


@pytest.mark.parametrize("name", list(REFERENCES))
def test_reference_value(name):
    expected, loss, tuples = REFERENCES[name]
    assert loss(Z, Y, tuples).item() == pytest.approx(expected, abs=1e-5)
