"""Activation maps and regions of similarity: sums by loops, the strongest channels, files."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import nearkin
from nearkin.analysis._regions import parts_of, regions, shares
from nearkin.analysis.activation import strongest
from nearkin.analysis.embedded import last_map, loaded
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.models import build_model


def model(**settings):
    torch.manual_seed(0)
    made = build_model(backbone="convnet", **{"dim": 8} | settings).eval()
    for module in made.modules():  # a bias, so that there is a rest
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.bias)
    return made


def images(n=4):
    return torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pool": "max"},
        {"pool": "both"},
        {"head": "none"},
        {"pre_norm": "layer"},
        {"norm": "layer", "pool": "both"},
        {"cut": "block2"},
        {"cut": "all"},
    ],
    ids=str,
)
def test_regions_sum_to_the_cosine(settings):
    net = model(**settings)
    parts = parts_of(net, images())
    z = net(images()).z.double()
    assert parts.of == "embedding"
    torch.testing.assert_close(parts.z, z, rtol=1e-4, atol=1e-5)
    first, second = (type(parts)(parts.z[at], parts.places[at], parts.rest[at], parts.of) for at in ([0, 2], [1, 3]))
    here, there, rest, cosine = regions(first, second)
    expected = torch.nn.functional.cosine_similarity(z[[0, 2]], z[[1, 3]])
    torch.testing.assert_close(cosine, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(here.sum((1, 2)) + rest[0], cosine)
    torch.testing.assert_close(there.sum((1, 2)) + rest[1], cosine)


def test_one_place_by_hand():
    """Average pooling and a linear head: (W x_u / hw)·z' / (‖z‖‖z'‖)."""
    net = model()
    with torch.no_grad():
        x = last_map(net, net.record.normalise(images(2)))
        z = net(images(2)).z
        h, w = x.shape[2:]
        expected = (net.head.weight @ x[0, :, 1, 0] / (h * w)) @ z[1] / z[0].norm() / z[1].norm()
    parts = parts_of(net, images(2))
    one = [type(parts)(parts.z[[i]], parts.places[[i]], parts.rest[[i]], parts.of) for i in (0, 1)]
    assert regions(*one)[0][0, 1, 0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_max_pooling_gives_a_channel_to_its_place():
    net = model(pool="max")
    x = torch.rand(2, 5, 3, 3)
    phi = shares(net, x)
    torch.testing.assert_close(phi.sum((1, 2)), x.amax((2, 3)))
    assert ((phi > 0).sum((1, 2)) == 1).all()


def test_a_head_that_is_not_affine_leaves_the_pooled_feature():
    net = model(head="drml", dim=16, parts=4)
    parts = parts_of(net, images(2))
    assert parts.of == "pooled feature"
    with torch.no_grad():
        pooled = net.pooled(last_map(net, net.record.normalise(images(2))))
    torch.testing.assert_close(parts.z, pooled.double(), rtol=1e-4, atol=1e-5)


def test_the_three_strongest_channels():
    x = torch.zeros(1, 6, 2, 2)
    x[0, 4], x[0, 1], x[0, 2, 0, 0], x[0, 5] = 3, 2, 7, 1  # means 3, 2, 1.75, 1
    channels, means = strongest(x)
    assert channels.tolist() == [[4, 1, 2]]
    assert means[0].tolist() == [3, 2, 1.75]


def test_from_the_command_line(tiny, tmp_path):
    runs = tmp_path / "runs"
    made = [nearkin.train(tiny | {"epochs": epochs}, runs=runs) for epochs in (1, 0)]
    names = [run.hash for run in made]
    asked = ["analyse", "activation", *names, "--runs", str(runs), "--json", "-o", str(tmp_path / "there")]
    done = CliRunner().invoke(app, [*asked, "--images", "2"])
    assert done.exit_code == 0, (done.output, done.exception)
    told = json.loads(done.stdout)
    assert [run["run"] for run in told["runs"]] == names
    assert len(told["pairs"]) == 2
    seen = loaded(made[0])
    first = told["pairs"][0]
    z = seen.model(seen.pixels.test(np.array(first["rows"]))).z
    cosine = torch.nn.functional.cosine_similarity(z[:1], z[1:]).item()
    assert first["cosine"][names[0]] == pytest.approx(cosine, abs=1e-4)
    files = {path.name for path in (tmp_path / "there").iterdir()}
    assert files == {
        "activation.json",
        "activation.md",
        "activation.npz",
        "activation-channels.parquet",
        "activation-pairs.parquet",
        "activation-channels.png",
        "activation-pairs.png",
    }

    pair = [int(row) for row in seen.rows[[3, 9]]]
    done = CliRunner().invoke(app, [*asked, "--pair", ",".join(map(str, pair))])
    assert [p["rows"] for p in json.loads(done.stdout)["pairs"]] == [pair]
    done = CliRunner().invoke(app, [*asked, "--pair", "0,99999"])
    assert isinstance(done.exception, NearkinError)
    assert "is no test image of run" in str(done.exception)
