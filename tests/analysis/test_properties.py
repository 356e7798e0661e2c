"""Normalised R-precision: against loops, by simulation, on planted properties; bins; runs, studies and files."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

import nearkin
from nearkin.analysis._nr_precision import BAR, BINS, categories, nr_precision
from nearkin.analysis._over_runs import OneMethod, of_each_run
from nearkin.analysis.properties import Properties, PropertiesOfStudy, properties, shuffled
from nearkin.comparison.gather import gather
from nearkin.data import load_table
from nearkin.errors import NearkinError
from nearkin.runs.run import Run


def by_loops(z, values, query, gallery):
    """The definition, one query after another; query and gallery are indices, a value of -1 is missing."""
    e = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in z]
    found = []
    for q in query:
        count = sum(values[g] == values[q] for g in gallery)
        r, p = count - (q in gallery), count / len(gallery)
        if values[q] == -1 or r < 1 or p == 1:
            found.append(None)
            continue
        cosine = {g: sum(a * b for a, b in zip(e[q], e[g], strict=True)) for g in gallery if g != q}
        others = sorted(cosine, key=lambda g: -cosine[g])
        x = sum(values[g] == values[q] for g in others[:r])
        found.append((x - r * p) / math.sqrt(r * p * (1 - p)))
    return found


@pytest.mark.parametrize("roles", [None, "apart", "mixed"])
def test_equals_the_loops(roles):
    rng = np.random.default_rng(3)
    n = 40
    z = rng.normal(size=(n, 4))
    codes = {"three": rng.integers(0, 3, n), "rare": rng.integers(-1, 12, n)}
    given = {
        None: None,
        "apart": np.where(np.arange(n) < 15, "query", "gallery"),
        "mixed": np.where(np.arange(n) < 10, "query", np.where(np.arange(n) < 20, "both", "gallery")),
    }[roles]
    query = [i for i in range(n) if given is None or given[i] in ("query", "both")]
    gallery = [i for i in range(n) if given is None or given[i] in ("gallery", "both")]
    found = nr_precision(torch.from_numpy(z), codes, roles=given)
    for name, values in codes.items():
        expected = [math.nan if v is None else v for v in by_loops(z.tolist(), values.tolist(), query, gallery)]
        np.testing.assert_allclose(found[name].values, expected, rtol=1e-6, atol=1e-9)
        defined = [v for v in expected if not math.isnan(v)]
        assert found[name].mean == pytest.approx(np.mean(defined))
        assert found[name].queries == len(defined)


def simulated(share, times, n=200, seed=0):
    """Means (times,) and values (times, n) of a property that has nothing to do with the embeddings."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(6):  # embeddings, and for each of them as many properties
        z = torch.from_numpy(rng.normal(size=(n, 6)).astype(np.float32))
        codes = {i: rng.permutation(np.arange(n) % round(1 / share)) for i in range(times // 6)}
        values += [shared.values for shared in nr_precision(z, codes).values()]
    return np.mean(values, 1), np.array(values)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.1])
def test_without_a_relation_it_stays_within_the_bar(share):
    """Of single queries 99 % do; the mean over queries, which is what is told, does so much more surely."""
    means, values = simulated(share, times=60)
    assert (np.abs(values) < BAR).mean() >= 0.99
    assert values.std() == pytest.approx(math.sqrt(1 - share), rel=0.07)  # drawn without replacement
    assert (np.abs(means) < BAR).all()
    assert np.abs(means).max() < 0.4  # so that a mean of 2.576 is far from what chance does


def test_a_single_query_of_a_rare_value_leaves_the_bar_more_often():
    """What 2.576 does not promise: with R p = 0.1 hits expected, the one hit of one query in ten is beyond it."""
    _, values = simulated(1 / 40, times=40)  # counts of 5: R = 4, p = 1/40
    assert 0.05 < (values > BAR).mean() < 0.15
    assert abs(values.mean()) < 0.2


def test_a_planted_property_is_found_and_another_is_not():
    rng = np.random.default_rng(0)
    planted, other = rng.integers(0, 5, 300), rng.integers(0, 5, 300)
    z = rng.normal(size=(300, 8))
    z[:, :5] += 3 * np.eye(5)[planted]
    found = nr_precision(torch.from_numpy(z), {"planted": planted, "other": other})
    assert found["planted"].mean > BAR
    shared = found["planted"]
    assert shared.over_queries(shared.precisions) > 2 * shared.over_queries(shared.shares)
    assert abs(found["other"].mean) < 1


def test_numbers_are_binned_by_quantiles_and_few_values_are_categories():
    values = np.random.default_rng(0).exponential(size=1000)
    found = categories("angle", values)
    assert len(found.edges) == BINS + 1
    assert (found.edges[0], found.edges[-1]) == (values.min(), values.max())
    counts = np.bincount(found.codes)
    assert len(counts) == BINS
    assert counts.min() >= 99
    inside = found.codes[(values >= found.edges[3]) & (values < found.edges[4])]
    assert (inside == 3).all()
    sizes = categories("size", np.repeat([38, 40, 54], 10))
    assert sizes.edges is None
    assert sizes.codes.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    words = categories("face", np.array(["b", "a", "", "b"]))
    assert words.codes.tolist() == [1, 0, -1, 1]  # an empty cell is no value
    assert categories("x", np.array([0.5, np.nan, *np.linspace(0, 1, 98)])).codes[1] == -1


def test_a_text_column_of_a_parquet_file(tmp_path):
    """Its words are Python objects."""
    z = np.random.default_rng(0).normal(size=(40, 4))
    words = [["red", "$_$x"][i % 2] for i in range(40)]
    table = pa.table({"embeddings": list(z), "label": [f"c{i // 5}" for i in range(40)], "colour": words})
    pq.write_table(table, tmp_path / "own.parquet")
    found = Properties.of_files([tmp_path / "own.parquet"])
    own = found.measured["properties"]["colour"]
    assert (own["categories"], own["edges"]) == (2, None)
    expected = by_loops(z.tolist(), [i % 2 for i in range(40)], range(40), range(40))
    assert found.values["colour"] == pytest.approx(expected, rel=1e-5)
    assert categories("word", np.array(["a", "", "b", "a"], dtype=object)).codes.tolist() == [0, -1, 1, 0]


def test_what_cannot_be_a_property_is_said():
    assert categories("id", np.array([f"image {i}" for i in range(50)])) == "every image has another value"
    assert categories("camera", np.array(["a"] * 9)) == "all images have the value a"
    with pytest.raises(NearkinError, match=r"property 'x': 3 values for 4 embeddings"):
        nr_precision(torch.ones(4, 2), {"x": np.array([0, 1, 1])})


def test_shuffling_within_classes_keeps_what_each_class_has():
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(0, 4, 60), rng.choice(["a", "b", "c"], 60)
    made = shuffled(codes, labels, rng)
    assert (made != codes).any()
    for c in "abc":
        assert sorted(made[labels == c]) == sorted(codes[labels == c])


def test_what_comes_with_the_class_is_told_apart():
    """Embeddings of classes alone: a property that most images of a class share is found, but not beyond the class."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 30)
    z = 3 * np.eye(8)[labels] + rng.normal(size=(240, 8))
    colour = np.where(rng.random(240) < 0.8, labels % 2, rng.integers(0, 2, 240))
    tilt = rng.normal(size=240)
    z[:, 7] += 4 * tilt
    found = properties(torch.from_numpy(z), {"colour": colour, "tilt": tilt}, labels).numbers["properties"]
    assert found["colour"]["nr_precision"] == pytest.approx(found["colour"]["by_class"], abs=0.3)
    assert found["colour"]["nr_precision"] > 0.4
    assert not found["colour"]["beyond_class"]
    assert found["tilt"]["beyond_class"]
    assert found["tilt"]["nr_precision"] > 0.5 > abs(found["tilt"]["by_class"])
    assert found["class"]["by_class"] is None
    assert (found["tilt"]["categories"], len(found["tilt"]["edges"])) == (BINS, BINS + 1)


def test_a_run_a_study_and_a_file(tiny, tmp_path):
    runs = [nearkin.train(tiny | {"epochs": 0}, runs=tmp_path, **{"train.seed": seed}) for seed in (0, 1)]
    found = Properties.of(runs[0])
    table = load_table("glyphs", classes=24, per_class=10)
    test = table.split == "test"
    faces = np.unique(table.columns["face"], return_inverse=True)[1][test]
    with np.load(runs[0].path / "embeddings.npz") as held:
        z = held["embeddings"]
        content = {"embeddings": z, "labels": held["labels"], "face": table.columns["face"][test]}
    expected = [math.nan if v is None else v for v in by_loops(z.tolist(), faces.tolist(), range(120), range(120))]
    assert found.values["face"] == pytest.approx(expected, nan_ok=True, rel=1e-5)
    assert {"class", "family", "weight", "slant", "rotation", "size", "foreground_hue", "noise"} <= set(found.values)
    low, high = found.numbers["properties"]["rotation"]["edges"][::10]
    assert low == table.columns["rotation"].min()  # bins are those of the data set, alike for every fold
    assert high == table.columns["rotation"].max()

    np.savez(tmp_path / "own.npz", **content)
    own = Properties.of_files([tmp_path / "own.npz"])
    face = found.measured["properties"]["face"]["nr_precision"]
    assert own.measured["properties"]["face"]["nr_precision"] == pytest.approx(face)

    files = {path.name for path in found.save(runs[0].path / "analysis")}
    assert {"properties.json", "properties.npz", "properties-bars.png", "properties-all.parquet"} <= files
    told = json.loads((runs[0].path / "analysis" / "properties.json").read_text())
    assert (told["version"], told["options"]) == (1, {})
    told["numbers"]["properties"]["face"]["nr_precision"] = 77.0  # what is stored is not computed again
    (runs[0].path / "analysis" / "properties.json").write_text(json.dumps(told))
    again = Properties.of(runs[0])
    assert again.measured["properties"]["face"]["nr_precision"] == 77
    assert again.values["face"] == pytest.approx(found.values["face"], nan_ok=True)
    study = Properties.between(gather([run.hash for run in runs], tmp_path))
    ((name, method),) = study.numbers["methods"].items()
    assert (name, method["kind"]) == ("random_head (untrained)", "untrained")
    assert method["properties"]["face"]["seeds"]["0"] == 77
    assert (runs[1].path / "analysis" / "properties.json").exists()
    assert study.numbers["kinds"] == {}
    assert "properties-methods.png" in {path.name for path in study.save(tmp_path / "there")}
    stale = {**told, "version": 0}
    (runs[0].path / "analysis" / "properties.json").write_text(json.dumps(stale))
    fresh = of_each_run(Properties, gather([runs[0].hash], tmp_path))[runs[0].hash].numbers
    assert fresh["properties"]["face"]["nr_precision"] != 77


def test_other_images_and_untested_runs_are_refused(tiny, tmp_path):
    run = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    (run.path / "files.json").unlink()  # as of a run that has no checksums
    run = Run(run.path)
    with np.load(run.path / "embeddings.npz") as held:
        arrays = dict(held)
    np.savez(run.path / "embeddings.npz", **arrays | {"labels": arrays["labels"][::-1]})
    with pytest.raises(NearkinError, match=f"glyphs does not hold the images that run {run.hash} was tested on"):
        Properties.of(run)
    (run.path / "result.json").unlink()
    with pytest.raises(NearkinError, match=f"run {run.hash} is not tested"):
        Properties.of(run)


def test_kinds_by_hand():
    """Two ranking losses against two that classify, three seeds of two folds each: folds are averaged first; a seed
    that one of them lacks does not count."""
    values = {"margin": (1, 2, 3), "triplet": (3, 4, 5), "arcface": (6, 8, 10), "proxy_nca": (9, 5, 10, 99)}
    groups, found = [], {}
    for name, means in values.items():
        members = []
        for seed, mean in enumerate(means):
            for fold in (0, 1):
                run = SimpleNamespace(hash=f"{name}{seed}{fold}")
                found[run.hash] = {"properties": {"face": {"nr_precision": mean + (fold - 0.5), "beyond_class": seed}}}
                members.append(SimpleNamespace(seed=seed, fold=fold, run=run, done=True, head={"data_hash": "d0"}))
        kind = "ranking" if name in ("margin", "triplet") else "classification"
        groups.append(OneMethod(name, kind, tuple(members)))
    study = PropertiesOfStudy(groups, found)
    own = study.numbers["kinds"]["face"]
    assert (own["ranking"], own["classification"], own["seeds"]) == (3, 8, 3)
    assert own["p"] == stats.mannwhitneyu([1, 2, 3, 3, 4, 5], [6, 8, 10, 9, 5, 10]).pvalue
    assert own["p_losses"] == own["p_losses_holm"] == stats.mannwhitneyu([2, 4], [8, 8]).pvalue
    margin = study.numbers["methods"]["margin"]["properties"]["face"]
    assert (margin["seeds"], margin["significant"], margin["beyond_class"]) == ({"0": 1, "1": 2, "2": 3}, False, False)
    methods, kinds = study.tables[:2]
    assert methods.texts()[2][2:] == ["8.00*"]
    assert "One family of 1 test" in " ".join(kinds.notes)

    few = [OneMethod(each.name, each.kind, tuple(m for m in each.members if m.seed < 2)) for each in groups]
    study = PropertiesOfStudy(few, found)
    assert study.numbers["kinds"]["face"]["p_losses"] is None
    assert "no test over losses: at least three seeds are needed" in study.tables[1].notes
    few[0] = OneMethod("margin", "ranking", tuple(m for m in groups[3].members if m.seed == 3))
    study = PropertiesOfStudy(few, found)
    assert study.numbers["kinds"]["face"]["ranking"] is None
    assert any("face: no common seeds" in note for note in study.tables[1].notes)
