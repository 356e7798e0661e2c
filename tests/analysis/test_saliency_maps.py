"""Saliency maps: closed form on a linear network, a loop over copies, the frozen front of a cut, storage."""

import json

import numpy as np
import pytest
import torch
import yaml

import nearkin
from nearkin.analysis import _saliency_maps as saliency_maps
from nearkin.analysis._saliency_maps import compared, maps_of, scaled, smooth_maps
from nearkin.analysis.embedded import from_input, loaded
from nearkin.errors import NearkinError
from nearkin.runs.run import Run


def linear(d=6, side=5, seed=0):
    torch.manual_seed(seed)
    weight = torch.randn(d, 3 * side * side)
    return weight, lambda x: x.flatten(1) @ weight.T


def test_a_linear_network_has_the_closed_form():
    """Under the inner product ∂/∂x z·z₀ = Wᵀz₀ for every copy: their sum over 50 copies, each divided by 50."""
    weight, embed = linear()
    x, reference = torch.randn(3, 3, 5, 5), torch.randn(1, 6)
    expected = (reference @ weight).view(3, 5, 5).mean(0).abs()
    found = smooth_maps(embed, x, reference, "dot", np.arange(3), batch=7)
    for image in found:
        torch.testing.assert_close(image, expected, rtol=1e-4, atol=1e-5)


def test_a_linear_network_under_the_raw_distance():
    """∂/∂x ‖Wx - z₀‖ = Wᵀ(Wx_s - z₀)/‖Wx_s - z₀‖, from the noise itself."""
    weight, embed = linear()
    x, reference = torch.randn(2, 3, 5, 5), torch.randn(1, 6)
    found = smooth_maps(embed, x, reference, "raw_euclid", np.array([4, 9]), copies=5, seed=3, batch=4)
    for i, row in enumerate((4, 9)):
        noise = saliency_maps._noise(x, row, 5, 3)
        sigma = 0.15 * (x[i].max() - x[i].min())
        expected = torch.zeros(5, 5)
        for s in range(5):
            apart = embed((x[i] + sigma * noise[s])[None]) - reference
            expected += ((apart / apart.norm()) @ weight).view(3, 5, 5).mean(0).abs() / 5
        torch.testing.assert_close(found[i], expected, rtol=1e-4, atol=1e-5)


def test_neither_batch_nor_neighbours_change_a_map():
    _, embed = linear()
    x, reference = torch.randn(4, 3, 5, 5), torch.randn(1, 6)
    rows = np.array([2, 5, 7, 8])
    whole = smooth_maps(embed, x, reference, "cosine", rows, copies=6)
    for batch in (1, 4, 5, 6, 13):
        torch.testing.assert_close(smooth_maps(embed, x, reference, "cosine", rows, copies=6, batch=batch), whole)
    alone = smooth_maps(embed, x[2:3], reference, "cosine", rows[2:3], copies=6)
    torch.testing.assert_close(alone[0], whole[2])
    assert not torch.allclose(smooth_maps(embed, x, reference, "cosine", rows, copies=6, seed=1), whole)


def test_the_noise_is_what_it_says():
    x = torch.zeros(1, 3, 30, 30)
    noise = saliency_maps._noise(x, 5, 50, 0)
    assert noise.shape == (50, 3, 30, 30)
    assert abs(noise.mean()) < 0.01
    assert abs(noise.std() - 1) < 0.01
    assert not torch.equal(noise, saliency_maps._noise(x, 6, 50, 0))


def test_scaling_by_the_99th_percentile():
    rng = np.random.default_rng(0)
    raw = rng.random((2, 20, 20)) + 3
    found = scaled(raw)
    for i in range(2):
        values = sorted(raw[i].flatten())
        at = 0.99 * 399
        top = values[int(at)] + (at - int(at)) * (values[int(at) + 1] - values[int(at)])
        expected = [[min(1, (v - values[0]) / (top - values[0])) for v in line] for line in raw[i]]
        np.testing.assert_allclose(found[i], expected, rtol=1e-9)
    assert (scaled(np.full((1, 4, 4), 2.0)) == 0).all()  # constant
    spot = np.zeros((1, 20, 20))
    spot[0, 3, 3] = 5
    assert (scaled(spot) == spot / 5).all()  # all but 1 % alike


def by_autograd(run, row, seed=0):
    """The map of one image by another road: one copy at a time, the plain model, no folding."""
    seen = loaded(run)
    told = saliency_maps.about(run, seed)
    x = seen.model.record.normalise(seen.pixels.test(np.array([row])))
    z0 = from_input(seen.model, seen.model.record.normalise(torch.zeros(1, *x.shape[1:], dtype=torch.uint8)))
    noise = saliency_maps._noise(x, row, 50, seed)
    total = torch.zeros(x.shape[2:])
    for s in range(50):
        noisy = (x + 0.15 * (x.max() - x.min()) * noise[s]).requires_grad_()
        compared(told["measure"], from_input(seen.model, noisy), z0).sum().backward()
        total += noisy.grad[0].mean(0).abs() / 50
    return scaled(total[None].double().numpy())[0]


@pytest.mark.parametrize("words", [{}, {"model.cut": "block2", "loss": "proxy_anchor"}], ids=str)
def test_maps_of_a_run_are_stored_and_never_computed_twice(words, tiny, tmp_path, monkeypatch):
    run = nearkin.train(tiny | {"epochs": 1} | words, runs=tmp_path)
    seen = loaded(run)
    assert not any(p.requires_grad for p in seen.model.parameters())
    torch.testing.assert_close(
        from_input(seen.model, seen.model.record.normalise(seen.pixels.test(seen.rows[:3]))),
        seen.model(seen.pixels.test(seen.rows[:3])).z,
    )
    rows = seen.rows[[1, 5, 40]]
    found = maps_of(run, rows)
    assert found.dtype == np.float16
    assert found.shape == (3, 32, 32)
    assert 0 <= found.min() < found.max() == 1
    np.testing.assert_allclose(found[1], by_autograd(run, int(rows[1])), atol=2e-2)

    asked = []
    plainly = saliency_maps.each_map

    def counted(seen, rows, *rest):
        asked.extend(rows.tolist())
        yield from plainly(seen, rows, *rest)

    monkeypatch.setattr(saliency_maps, "each_map", counted)
    more = seen.rows[[40, 41, 5]]
    np.testing.assert_array_equal(maps_of(run, more)[[0, 2]], found[[2, 1]])
    assert asked == [seen.rows[41]]
    maps_of(run, rows[:1], seed=1)  # other noise: other maps
    assert asked == [seen.rows[41], rows[0]]


def test_an_interrupted_run_goes_on(tiny, tmp_path, monkeypatch):
    run = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    rows = loaded(run).rows[:5]
    plainly = saliency_maps.each_map

    def stopped(*args):
        for i, each in enumerate(plainly(*args)):
            if i == 3:
                raise KeyboardInterrupt
            yield each

    monkeypatch.setattr(saliency_maps, "each_map", stopped)
    with pytest.raises(KeyboardInterrupt):
        maps_of(run, rows)
    with np.load(run.path / "analysis" / "saliency-maps.npz") as held:
        assert held["rows"].tolist() == rows[:3].tolist()
        assert json.loads(str(held["about"]))["measure"] == "euclid"
    monkeypatch.setattr(saliency_maps, "each_map", plainly)
    again = maps_of(run, rows)
    (run.path / "analysis" / "saliency-maps.npz").unlink()
    np.testing.assert_allclose(again, maps_of(run, rows), atol=2e-3)


def test_models_and_images_that_are_gone(tiny, tmp_path):
    run = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    rows = loaded(run).rows[:1]
    (run.path / "model.pt").rename(run.path / "away.pt")
    with pytest.raises(NearkinError, match=f"run {run.hash} has no model: .*model.pt is gone"):
        maps_of(run, rows)
    (run.path / "away.pt").rename(run.path / "model.pt")
    (run.path / "files.json").unlink()  # as of a run that has no checksums
    run = Run(run.path)
    told = yaml.safe_load((run.path / "spec.yaml").read_text())
    own = {key: told["spec"]["data"][key] for key in ("size", "resize", "crop")}
    told["spec"]["data"] = own | {"name": "folder", "root": "gone"}
    (run.path / "spec.yaml").write_text(yaml.safe_dump(told))
    with pytest.raises(NearkinError, match="is looked at through its images, which are not in gone"):
        maps_of(run, rows)
