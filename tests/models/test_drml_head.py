"""The head of DRML: values, its start, where gradients go, bad input."""

import math

import pytest
import torch
from oracles import drml as oracle

from nearkin.errors import NearkinError
from nearkin.models import build_model
from nearkin.models.drml import DRMLHead, PartLinear
from nearkin.registry import BACKBONES


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make(features=12, dim=8, parts=4, seed=0, stir=True, dtype=torch.float64):
    torch.manual_seed(seed)
    head = DRMLHead(features, dim, parts=parts).to(dtype)
    if stir:  # as after some steps: nothing at its start any more
        with torch.no_grad():
            for p in head.parameters():
                p.add_(torch.randn(p.shape, dtype=dtype) * 0.5)
    return head


def features(batch=5, width=12, seed=1, dtype=torch.float64):
    return torch.randn(batch, width, generator=seeded(seed), dtype=dtype)


def gradients(value, tensors):
    return torch.autograd.grad(value, tensors, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize(("width", "dim", "parts"), [(12, 8, 4), (12, 8, 2), (9, 6, 3), (5, 4, 1), (4, 4, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_loops_with_gradients(width, dim, parts, seed):
    head, f = make(width, dim, parts, seed), features(width=width, seed=seed).requires_grad_()
    out = head(f)
    assert out.z.shape == (5, dim)
    expected = torch.stack([oracle.embedding_of(head, f_i) for f_i in f])
    nodes = torch.stack([torch.stack(oracle.nodes_of(head, f_i)) for f_i in f])
    torch.testing.assert_close(out.z, expected, rtol=0, atol=1e-8)
    torch.testing.assert_close(out.extras["nodes"], nodes, rtol=0, atol=1e-8)
    assert torch.equal(out.extras["parts"], f.detach().reshape(5, parts, width // parts))
    weight = torch.randn(5, dim, generator=seeded(9), dtype=torch.float64)
    inputs = [f, *head.parameters()]
    for ours, theirs in zip(
        gradients((out.z * weight).sum(), inputs), gradients((expected * weight).sum(), inputs), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)


def test_scores_equal_the_loops_and_each_column_sums_to_one_or_zero():
    head, f = make(), features(40)
    scores = head.scores(f.unflatten(1, (4, 3)))
    expected = torch.stack([torch.stack([torch.stack(row) for row in oracle.scores_of(head, f_i)]) for f_i in f])
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-10)
    sums = scores.sum(1)
    assert ((sums - 1).abs() < 1e-12).logical_or(sums == 0).all()
    assert (sums == 0).any()
    assert (sums > 0).any()


def test_the_relation_module_starts_as_the_identity():
    head = make(stir=False, dtype=torch.float32)
    out = head(features(dtype=torch.float32))
    assert torch.equal(out.z, out.extras["nodes"].flatten(1))
    assert head.scores(out.extras["parts"]).any()  # it is Ω that hides them, not the scores
    torch.testing.assert_close(out.extras["nodes"].norm(dim=2), torch.ones(5, 4))


def test_weights_start_kaiming_normal_fan_out_with_zero_bias():
    torch.manual_seed(0)
    layer = PartLinear(4, 256, 128)
    assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / 128), rel=0.02)
    assert not layer.bias.any()
    assert not torch.equal(layer.weight[0], layer.weight[1])
    head = DRMLHead(64, 4000, parts=1)
    assert head.score_weight.std().item() == pytest.approx(math.sqrt(2), rel=0.1)
    assert head.score_bias == 0
    assert not head.merge_bias.any()


# -- where gradients go --------------------------------------------------------------------------------------


def test_nodes_do_not_reach_the_relation_module():
    head, f = make(), features().requires_grad_()
    reached = dict(
        zip(
            [n for n, _ in head.named_parameters()],
            gradients(head(f).extras["nodes"].pow(3).sum(), list(head.parameters())),
            strict=True,
        )
    )
    assert {name for name, g in reached.items() if g.any()} == {"embed.weight", "embed.bias"}


def test_the_embedding_reaches_every_parameter():
    head = make()
    for gradient in gradients(head(features(20)).z.pow(3).sum(), list(head.parameters())):
        assert gradient.any()


def test_the_feature_gets_no_gradient_through_the_scores(monkeypatch):
    head, f = make(), features().requires_grad_()
    (through,) = gradients(head(f).z.pow(3).sum(), [f])
    fixed = head.scores(f.detach().unflatten(1, (4, 3))).detach()
    monkeypatch.setattr(head, "scores", lambda parts: fixed)
    (constant,) = gradients(head(f).z.pow(3).sum(), [f])
    assert through.any()
    torch.testing.assert_close(through, constant, rtol=0, atol=1e-12)
    assert not head(f).extras["parts"].requires_grad


def test_part_k_of_the_feature_moves_node_k_alone():
    head, f = make(), features().requires_grad_()
    (gradient,) = gradients(head(f).extras["nodes"][:, 2].pow(3).sum(), [f])
    assert gradient[:, 6:9].any()
    assert not gradient[:, :6].any()
    assert not gradient[:, 9:].any()


# -- edges ---------------------------------------------------------------------------------------------------


def test_scores_of_zero_stay_zero_with_a_finite_gradient():
    head, f = make(), features().requires_grad_()
    with torch.no_grad():
        head.score_bias.fill_(-1e6)
    out = head(f)
    assert not head.scores(out.extras["parts"]).any()
    for gradient in gradients(out.z.pow(3).sum(), [f, *head.parameters()]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("f", [torch.zeros(2, 12), torch.full((2, 12), 1e4), torch.randn(1, 12), torch.zeros(0, 12)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_finite_at_the_edges(f, dtype):
    head = make(dtype=torch.float32)
    out = head(f.to(dtype))
    assert out.z.shape == (len(f), 8)
    assert out.z.dtype == torch.float32
    assert out.z.isfinite().all()
    assert all(len(extra) == len(f) for extra in out.extras.values())
    for gradient in gradients(out.z.pow(3).sum(), list(head.parameters())):
        assert gradient.isfinite().all()


def test_rows_do_not_depend_on_each_other():
    head, f = make(), features(6)
    torch.testing.assert_close(head(f[2:4]).z, head(f).z[2:4])


@pytest.mark.parametrize(
    ("width", "dim", "parts", "words"),
    [
        (64, 16, 3, "model.parts=3 must divide the 64 features .* model.dim=16; nearest that do: 2, 4"),
        (64, 18, 4, "nearest that do: 1, 2, or model.dim=16"),
        (64, 19, 4, "or model.dim=20"),
        (12, 3, 6, "or model.dim=6"),
        (64, 16, 0, "nearest that do: 1, 2"),
        (64, 16, -4, "nearest that do: 1, 2"),
    ],
)
def test_parts_that_do_not_divide_are_refused(width, dim, parts, words):
    with pytest.raises(NearkinError, match=words):
        DRMLHead(width, dim, parts=parts)


@pytest.mark.parametrize("name", BACKBONES.names())
@pytest.mark.parametrize("cut", ["none", "all"])
def test_every_backbone_takes_it_whole_and_behind_a_cut(name, cut):
    torch.manual_seed(0)
    model = build_model(backbone=name, head="drml", dim=16, parts=4, cut=cut, norm="layer")
    embedded = model(torch.randint(0, 255, (2, 3, 64, 64), dtype=torch.uint8))
    assert embedded.z.shape == (2, 16)
    assert embedded.extras["nodes"].shape == (2, 4, 4)
    assert embedded.extras["parts"].shape == (2, 4, model.backbone.features // 4)
    torch.testing.assert_close(embedded.z.mean(1), torch.zeros(2), rtol=0, atol=1e-5)  # LayerNorm, as HIST wants it
