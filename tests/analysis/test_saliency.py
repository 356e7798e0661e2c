"""Agreement of saliency maps between runs: tables by loops, seeds as yardstick, published values, what is refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import nearkin
from nearkin.analysis import _saliency_tables as kobs
from nearkin.analysis._over_runs import OneMethod
from nearkin.analysis.saliency import Saliency
from nearkin.cli.app import app
from nearkin.errors import NearkinError


def member(loss, seed, **settings):
    words = {"loss.name": loss, "train.epochs": 4, "model.head": "linear", "data.size": 8} | settings
    return SimpleNamespace(settings=words, seed=seed, run=SimpleNamespace(hash=f"{loss}{seed}"))


def table(saliency, name):
    return next(table for table in saliency.tables if table.name == name)


def made(values=None, n=12, seed=0, data="cub"):
    """Two seeds of contrastive, one of margin, two of arcface, one untrained; random correlations."""
    groups = [
        OneMethod("contrastive", "ranking", (member("contrastive", 0), member("contrastive", 1))),
        OneMethod("margin", "ranking", (member("margin", 0),)),
        OneMethod("arcface", "classification", (member("arcface", 0), member("arcface", 1))),
        OneMethod("None", "untrained", (member("margin", 0, **{"train.epochs": 0}),)),
    ]
    rng = np.random.default_rng(seed)
    r = rng.uniform(0.2, 0.9, (n, 6, 6))
    r = (r + r.transpose(0, 2, 1)) / 2
    maps = rng.random((6, 2, 8, 8)).astype(np.float16)
    classes = np.repeat([f"class {i}" for i in range(n // 3)], 3)
    return Saliency(groups, data, np.arange(n), classes, r, r / 10, maps, None, {"images": n, "seed": 0})


def test_cells_by_loops():
    found = made()
    runs = {"contrastive": [0, 1], "margin": [2], "arcface": [3, 4], "None": [5]}
    seed = [0, 1, 0, 0, 1, 0]
    two = [("contrastive", "arcface"), ("margin", "None"), ("contrastive", "contrastive"), ("arcface", "arcface")]
    for a, b in two:
        cell = found.correlation[a, b]
        z = []
        for image in found.r:
            pairs = [
                np.arctanh(image[i, j])
                for i in runs[a]
                for j in runs[b]
                if (i < j if a == b else seed[i] != seed[j] or (a, b) == ("margin", "None"))
            ]
            z.append(sum(pairs) / len(pairs))
        assert cell.mean == pytest.approx(np.tanh(np.mean(z)))
        assert cell.spread == pytest.approx(np.tanh(np.std(z, ddof=1)))
        assert cell.n == 12
    assert ("margin", "margin") not in found.correlation  # margin has one seed
    seeds, between = np.arctanh(found.r[:, 0, 1]), np.arctanh(found.r[:, 1, 2])
    assert found.beyond_seeds["contrastive", "margin"].mean == pytest.approx((seeds - between).mean())
    both = (seeds + np.arctanh(found.r[:, 3, 4])) / 2 - np.arctanh(found.r[:, [0, 1], [4, 3]]).mean(1)
    assert found.beyond_seeds["contrastive", "arcface"].mean == pytest.approx(both.mean())
    assert found.pairs.same_seed  # margin and the untrained network have one seed
    assert any("have one seed" in note for note in table(found, "correlation").notes)


def test_intervals_are_over_classes_and_say_so():
    found = made()
    cell = found.correlation["contrastive", "margin"]
    z = np.arctanh(found.r[:, 1, 2]).reshape(4, 3).mean(1)  # of each class
    half = stats.t.ppf(0.975, 3) * z.std(ddof=1) / 2
    assert (cell.low, cell.high) == pytest.approx((np.tanh(z.mean() - half), np.tanh(z.mean() + half)))
    assert (cell.n, cell.classes) == (12, 4)
    for name in ("groups", "pairs"):
        notes = " ".join(table(found, name).notes)
        assert "those of one class as one unit" in notes
        assert "these models only" in notes
    assert "at least three seeds are needed" in " ".join(table(found, "pairs").notes)


def test_groups_of_pairs():
    found = made().by_group
    assert {name: n for name, (_, _, n) in found.items()} == {
        "two seeds of one loss": 2,
        "two ranking losses": 1,
        "ranking and classification": 3,
        "trained and untrained": 3,
    }
    z = np.arctanh(made().r[:, [0, 3], [1, 4]]).mean(1)
    assert found["two seeds of one loss"][0].mean == pytest.approx(np.tanh(z.mean()))


def test_tables_have_the_published_values_beside_ours():
    found = made()
    matrix = table(found, "correlation").texts()
    assert [row[0] for row in matrix] == ["contrastive", "margin", "arcface", "None"]
    assert matrix[0][4] == matrix[2][2]  # symmetric
    assert matrix[1][3] == "–"  # one seed
    published = table(found, "pairs")
    place = [column.title for column in published.shown].index("published %")
    pairs = {(row[0], row[1]): row[place] for row in published.texts()}
    assert pairs["contrastive", "None"] == "86 ± 6"
    assert pairs["contrastive", "arcface"].startswith("89 ± 6")
    assert len(pairs) == 6
    numbers = {(row["first"], row["second"]): row for row in published}
    assert numbers["contrastive", "arcface"]["published_r"] == 89
    assert numbers["contrastive", "arcface"]["r"] == found.correlation["contrastive", "arcface"].mean
    assert kobs.published(found, ("contrastive", "contrastive"))[0].value is None
    json.dumps(found.numbers, allow_nan=False)


def test_a_constant_map_is_said_and_shown_as_a_dash():
    found = made()
    found.r[:, 5] = found.r[:, :, 5] = np.nan  # the untrained network's maps are all constant
    found.jsd[:, 5] = found.jsd[:, :, 5] = np.nan
    correlation = table(found, "correlation")
    assert correlation.texts()[0][5] == "–"
    assert "a constant map has no correlation: images left out of contrastive and None: 12" in " ".join(
        correlation.notes
    )
    assert "nan" not in str([each.rows for each in found.tables]).lower()
    json.dumps(found.numbers, allow_nan=False)


def test_equal_maps_are_shown_as_100():
    found = made()
    found.r[:] = 1
    assert table(found, "correlation").texts()[0][3] == "100.0 ± 0.0"
    assert "z is infinite" in " ".join(table(found, "correlation").notes)


@pytest.mark.parametrize("methods", [15, 40])
def test_the_panel_draws_every_method(methods):
    """Kobs et al. show 14 losses and none; more than fit into a row stand in rows below."""
    groups = [OneMethod(f"loss {i}", "ranking", (member("margin", 0),)) for i in range(methods)]
    maps = np.linspace(0, 1, methods * 2 * 64).reshape(methods, 2, 8, 8).astype(np.float16)
    none = np.zeros((4, methods, methods))
    pixels = np.zeros((2, 8, 8, 3), np.uint8)
    panel = Saliency(groups, "cub", np.arange(4), np.array(list("aabb")), none, none, maps, pixels, {})._panel()
    drawn = [caption for row in panel.captions for caption in row if caption != "image"]
    assert drawn == [f"loss {i}" for i in range(methods)]
    assert sum(len(row) for row in panel.images) == 2 * (methods + len(panel.images) // 2)
    assert len({image.tobytes() for row in panel.images for image in row}) == 2 * methods + 1  # pixels are black


def test_published_cells():
    assert kobs.published_name({"loss.name": "margin", "loss.per_class": False, "train.epochs": 1}) == "Margin"
    assert kobs.published_name({"loss.name": "margin", "loss.per_class": True, "train.epochs": 1}) == "Margin/class"
    miner = {"loss.name": "multi_similarity", "train.epochs": 1, "miner.name": "multi_similarity"}
    assert kobs.published_name(miner) == "MS+Miner"
    assert kobs.published_name(miner | {"miner.name": None}) == "MS"
    assert kobs.published_name({"loss.name": "margin", "train.epochs": 0, "model.head": "linear"}) == "None"
    assert kobs.published_name({"loss.name": "hist", "train.epochs": 1}) is None
    correlation, divergence = kobs.published_tables("cub")
    assert kobs.published_cell(correlation, "ProxyNCA", "Contrastive").value.mean == 88  # read from the other half
    assert kobs.published_cell(correlation, "Contrastive", "Contrastive").value is None
    assert kobs.published_cell(None, "Contrastive", "Triplet").value is None
    marked = sum(
        kobs.published_cell(t, a.method, b.name).asymmetric
        for t in (correlation, divergence)
        for a in t.rows
        for b in t.columns
    )
    flagged = sum(len(f.cells) for t in (correlation, divergence) for f in t.flags if f.kind == "not symmetric")
    assert marked == flagged > 0


def test_from_the_command_line(tiny, tmp_path):
    """Two seeds, another loss, and the untrained network."""
    runs = tmp_path / "runs"
    words = tiny | {"epochs": 1, "train.batches_per_epoch": 2}
    made = [nearkin.train(words | more, runs=runs) for more in ({"train.seed": 0}, {"train.seed": 1}, {"epochs": 0})]
    asked = [
        "analyse",
        "saliency",
        *(run.hash for run in made),
        "--runs",
        str(runs),
        "--images",
        "4",
        "--json",
        "-o",
        str(tmp_path / "there"),
    ]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, (done.output, done.exception)
    told = json.loads(done.stdout)
    assert told["images"] == 4
    assert [method["name"] for method in told["methods"]] == [made[0].spec.loss.name, "random_head (untrained)"]
    assert -1 <= told["groups"]["two seeds of one loss"]["correlation"]["mean"] <= 1
    files = {path.name for path in (tmp_path / "there").iterdir()}
    assert files == {path.name for path in (runs / "analysis").iterdir()}
    assert files == {
        "saliency.json",
        "saliency.md",
        "saliency.npz",
        "saliency-panel.png",
        "saliency-correlation.png",
        "saliency-divergence.png",
        *(f"saliency-{name}.parquet" for name in ("correlation", "divergence", "groups", "pairs", "cells")),
    }
    with np.load(tmp_path / "there" / "saliency.npz") as held:
        assert (held["r"][:, range(3), range(3)] == 1).all()  # a model with itself
        assert (held["jsd"][:, range(3), range(3)] == 0).all()
        assert np.isfinite(held["r"]).all()

    small = nearkin.train(words | {"data.size": 28}, runs=runs)
    done = CliRunner().invoke(app, ["analyse", "saliency", made[0].hash, small.hash, "--runs", str(runs)])
    assert isinstance(done.exception, NearkinError)
    assert "sees images of 32 pixels" in str(done.exception)
