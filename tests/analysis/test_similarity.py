"""Linear CKA and neighbour overlap: against slow formulas; losses against seeds; at the stages of a network."""

import json

import numpy as np
import pytest
import torch

import nearkin
from nearkin.analysis._alike import Alike, compared, linear_cka, overlap
from nearkin.analysis.embedded import stage_features
from nearkin.analysis.similarity import Similarity, similarity
from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError


def random(n=60, d=7, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def slow_cka(x, y):
    """HSIC of centred linear kernels, as Kornblith et al. write it."""
    n = len(x)
    h = np.eye(n) - 1 / n

    def hsic(a, b):
        return np.trace(h @ a @ a.T @ h @ h @ b @ b.T @ h) / (n - 1) ** 2

    return hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))


def test_cka_against_the_slow_formula():
    x, y = random(), random(d=12, seed=1)
    y[:, :3] += x[:, :3]
    assert linear_cka(x, y) == pytest.approx(slow_cka(x, y), rel=1e-6)
    assert linear_cka(random(n=8, d=40), random(n=8, d=50, seed=1)) == pytest.approx(
        slow_cka(random(n=8, d=40), random(n=8, d=50, seed=1)), rel=1e-6
    )


def test_cka_of_itself_of_a_rotation_and_of_noise():
    x = random(n=400)
    q, _ = np.linalg.qr(random(7, 7, seed=2))
    assert linear_cka(x, x) == pytest.approx(1)
    assert linear_cka(x, 3 * x @ q + 5) == pytest.approx(1, abs=1e-6)  # turned, scaled, moved
    assert linear_cka(x, random(n=400, seed=3)) < 0.1
    noisy = [linear_cka(x, x + s * random(n=400, seed=4)) for s in (0.1, 0.5, 2)]
    assert noisy == sorted(noisy, reverse=True)
    assert noisy[0] > 0.98
    assert linear_cka(x, np.ones((400, 2))) is None  # constant: undefined, not NaN


def test_overlap_against_loops():
    x, y = random(40, 5), random(40, 6, seed=1)
    found = overlap(x, y, k=6)
    for i in range(40):
        near = []
        for z in (x, y):
            e = z / np.linalg.norm(z, axis=1, keepdims=True)
            near.append(set(sorted((j for j in range(40) if j != i), key=lambda j: -float(e[i] @ e[j]))[:6]))
        assert found[i] == pytest.approx(len(near[0] & near[1]) / 6)
    assert (overlap(x, 2 * x, k=6) == 1).all()


def test_all_pairs_at_once_and_with_groups_left_out():
    x = [random(50, 6), random(50, 9, seed=1), random(50, 4, seed=2)]
    x[1][:, :6] += 2 * x[0]
    labels = np.repeat(np.arange(10), 5)
    found = compared(x, labels, k=4, groups=5, seed=0)
    for i in range(3):
        for j in range(3):
            assert found.cka[i, j] == pytest.approx(slow_cka(x[i], x[j]), rel=1e-4)
            assert found.overlap[i, j] == pytest.approx(overlap(x[i], x[j], k=4).mean())
    left = found.groups == 2  # (N,) the group of each image: whole classes
    assert all(len(set(found.groups[labels == c])) == 1 for c in range(10))
    assert found.cka_left[2, 0, 1] == pytest.approx(slow_cka(x[0][~left], x[1][~left]), rel=1e-4)
    assert found.overlap_left[2, 0, 1] == pytest.approx(overlap(x[0], x[1], k=4)[~left].mean())


def of_methods(loss_noise, seed_noise, losses=4, seeds=2, n=200, d=8):
    """One common structure; each loss adds its own to it, each run some noise."""
    base = random(n, d)
    runs, z = [], []
    for loss in range(losses):
        own = base + loss_noise * random(n, d, seed=10 + loss)
        for seed in range(seeds):
            runs.append({"name": f"{loss}/{seed}", "method": str(loss), "kind": "ranking", "seed": seed})
            z.append(own + seed_noise * random(n, d, seed=100 + 10 * loss + seed))
    return runs, {"embedding": z}, np.repeat(np.arange(20), n // 20)


def test_losses_that_differ_are_told_from_seeds():
    told = similarity(*of_methods(0.5, 0.3), k=5).numbers["levels"]["embedding"]
    assert told["cka"]["seeds"] > told["cka"]["losses"]
    assert told["cka"]["low"] > 0
    assert told["overlap"]["low"] > 0
    assert told["cka"]["difference"] == pytest.approx(told["cka"]["seeds"] - told["cka"]["losses"])
    assert told["cka"]["pairs"] == [4, 12]  # within: one per loss; between: another loss, another seed


def test_a_method_counts_once_however_many_seeds_it_has():
    """The first loss has four seeds that agree well, the second two that do not; a third with one seed is left out."""
    rows, levels, labels = of_methods(0.4, 0.3, losses=3, seeds=4)
    kept = [0, 1, 2, 3, 4, 5, 8]
    z = [levels["embedding"][i] + (2 if i > 3 else 0) * random(200, 8, seed=i) for i in kept]
    found = similarity([rows[i] for i in kept], {"embedding": z}, labels, k=5)
    told, matrix = found.numbers["levels"]["embedding"]["cka"], found.alike["embedding"].cka
    first = np.mean([matrix[i, j] for i in range(4) for j in range(i)])
    between = np.mean([matrix[i, j] for i in range(4) for j in (4, 5) if rows[i]["seed"] != rows[j]["seed"]])
    assert told["seeds"] == pytest.approx((first + matrix[4, 5]) / 2)
    assert told["losses"] == pytest.approx(between)
    assert told["pairs"] == [7, 6]


def test_losses_that_do_not_differ_are_not():
    told = similarity(*of_methods(0, 0.4), k=5).numbers["levels"]["embedding"]
    assert told["cka"]["low"] < 0 < told["cka"]["high"]
    assert abs(told["cka"]["difference"]) < 0.02


def test_one_seed_leaves_the_question_open():
    runs, levels, labels = of_methods(0.5, 0.3, seeds=1)
    found = similarity(runs, levels, labels, k=5)
    told = found.numbers["levels"]["embedding"]["cka"]
    assert (told["seeds"], told["difference"], told["low"]) == (None, None, None)
    assert told["losses"] is None  # other losses with another seed: there are none
    assert "–" in found.tables[0].texts()[0]


def test_runs_of_one_seed_are_shown_and_said():
    """Two methods whose only seed is the same: the pair is shown in the table of methods."""
    found = similarity(*of_methods(0.5, 0.3, losses=2, seeds=1), k=5)
    levels, sheet = found.tables[:2]
    assert sheet.rows[0][2] == sheet.rows[1][1] is not None
    assert sheet.rows[0][1] is None
    assert any("some pairs have one seed" in note for note in sheet.notes)
    assert any("at least three seeds are needed" in note for note in levels.notes)
    several = similarity(*of_methods(0.5, 0.3, seeds=3), k=5).tables
    assert "all pairs have two seeds" in several[1].notes
    assert not any("needed" in note for note in several[0].notes)
    assert any("these models only" in note for note in several[0].notes)


def test_two_files_are_a_pair(tmp_path):
    """Nothing is known of the seeds of files: every two of them are compared, whatever they are called."""
    files = []
    for i, folder in enumerate("ab"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "$_$net.npz")
        np.savez(files[-1], embeddings=random(40, 5 + i, seed=i), labels=np.repeat(list("abcdefgh"), 5))
    found = Similarity.of_files(files)
    sheet = found.tables[0]
    (row,) = sheet.texts()
    x = [unit(random(40, 5 + i, seed=i)) for i in range(2)]
    assert row[:2] == ["a/$_$net", "b/$_$net"]
    assert row[2] == f"{slow_cka(*x):.3f}"
    assert row[4] == f"{overlap(*x).mean():.3f}"
    assert " to " in row[3]
    assert any("these models only" in note for note in sheet.notes)
    told = found.numbers["levels"]["embedding"]["cka"]
    assert (told["seeds"], told["losses"]) == (None, pytest.approx(slow_cka(*x), rel=1e-4))
    assert {path.name for path in found.save(tmp_path / "there")} >= {
        "similarity-matrix.png",
        "similarity-files.parquet",
    }
    np.savez(tmp_path / "plain.npz", embeddings=random(40, 5))
    bare = Similarity.of_files([tmp_path / "plain.npz", files[0]]).tables[0]
    assert bare.texts()[0][2] == "1.000"
    both = [tmp_path / "plain.npz", tmp_path / "again.npz"]
    np.savez(both[1], embeddings=random(40, 6, seed=3))
    assert any("no labels" in note for note in Similarity.of_files(both).tables[0].notes)


def test_files_of_embeddings(tmp_path):
    for i in range(2):
        np.savez(tmp_path / f"net{i}.npz", embeddings=random(40, 5 + i, seed=i), labels=np.repeat(np.arange(8), 5))
    found = Similarity.of_files([tmp_path / "net0.npz", tmp_path / "net1.npz"])
    matrix = found.numbers["levels"]["embedding"]["cka"]["matrix"]
    assert matrix[0][1] == pytest.approx(slow_cka(*(unit(random(40, 5 + i, seed=i)) for i in range(2))), rel=1e-4)
    np.savez(tmp_path / "short.npz", embeddings=random(30, 5), labels=np.arange(30))
    with pytest.raises(NearkinError, match=r"40 embeddings and .*short.npz 30: the same images are compared"):
        Similarity.of_files([tmp_path / "net0.npz", tmp_path / "short.npz"])


def unit(z):
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def test_runs_and_their_stages(tiny, tmp_path):
    words = tiny | {"epochs": 1, "train.batches_per_epoch": 1}
    runs = [
        nearkin.train(words | {"train.seed": seed}, runs=tmp_path, loss=loss)
        for loss in ("margin", "proxy_anchor")
        for seed in (0, 1)
    ]
    gathered = gather([run.hash for run in runs], tmp_path)
    found = Similarity.between(gathered, images=48)
    assert list(found.numbers["levels"]) == ["block1", "block2", "block3", "block4", "embedding"]
    features = stage_features(runs[0], np.array([120, 130]))
    model = nearkin.load(runs[0]).model
    table = nearkin.data.load_table("glyphs", classes=24, per_class=10)
    x = model.record.normalise(torch.from_numpy(table.images[[120, 130]]).permute(0, 3, 1, 2))
    with torch.no_grad():
        for stage in model.backbone.stages:
            x = model.backbone.run_stage(stage, x)
            np.testing.assert_allclose(features[stage], x.mean((2, 3)).numpy(), rtol=1e-4, atol=1e-5)
    told = found.numbers
    assert [run["method"] for run in told["runs"]] == ["margin", "margin", "proxy_anchor", "proxy_anchor"]
    assert told["images"] == 48
    assert told["levels"]["block1"]["cka"]["pairs"] == [2, 2]
    names = {path.name for path in found.save(tmp_path / "there")}
    assert {"similarity.json", "similarity.npz", "similarity-levels.png", "similarity-matrix.png"} <= names
    assert json.loads((tmp_path / "there" / "similarity.json").read_text())["options"] == {"images": 48, "seed": 0}
    (runs[0].path / "model.pt").unlink()  # features are kept: the model is not asked again
    again = Similarity.between(gathered, images=48)
    assert again.numbers == told
    with pytest.raises(NearkinError, match="has no model"):
        Similarity.between(gathered, images=60)


def test_what_cannot_be_compared(tiny, tmp_path):
    first = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    with pytest.raises(NearkinError, match="similarity compares runs: 1 is not enough"):
        Similarity.between(gather([first.hash], tmp_path))
    other = nearkin.train(tiny | {"epochs": 0, "data.classes": 20}, runs=tmp_path)
    with pytest.raises(NearkinError, match=f"runs {first.hash} and {other.hash} were tested on other images"):
        Similarity.between(gather([first.hash, other.hash], tmp_path))
    assert isinstance(compared([random(), random(seed=1)], np.arange(60), k=3), Alike)
