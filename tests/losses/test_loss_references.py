"""Losses on the reference batch."""

import pytest
import torch
from reference_batch import PROXIES, TRIPLETS, Y, Z

from nearkin import losses, miners
from nearkin.pairs import Pairs


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


MS = miners.MultiSimilarity()
REFERENCES = {
    "contrastive, triplets": (1.162318, losses.Contrastive(), TRIPLETS),
    "contrastive, all pairs": (1.435873, losses.Contrastive(), None),
    "triplet, squared": (0.009275, losses.Triplet(), TRIPLETS),
    "triplet, unsquared": (0.053107, losses.Triplet(squared=False), TRIPLETS),
    "triplet, all": (0.322472, losses.Triplet(squared=False, margin=0.1, reduction="mean_active"), None),
    # [s_an - s_ap + 0.1]₊ is half of [d_ap² - d_an² + 0.2]₊
    "triplet, similarity": (2 * 0.367048, losses.Triplet(margin=0.2, reduction="mean_active"), None),
    "multi_similarity, no miner": (0.725722, losses.MultiSimilarity(beta=50.0), None),
    "multi_similarity, miner": (0.759905, losses.MultiSimilarity(), MS(Z, Y)),
    "proxy_anchor": (17.52403, with_proxies(losses.ProxyAnchor(5, 4)), None),
}


@pytest.mark.parametrize("name", list(REFERENCES))
def test_reference_value(name):
    expected, loss, tuples = REFERENCES[name]
    assert loss(Z, Y, tuples).item() == pytest.approx(expected, abs=1e-5)
