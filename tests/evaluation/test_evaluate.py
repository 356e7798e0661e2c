"""`evaluate` as people call it: what it takes, what it refuses, what it says."""

import inspect
import json
import textwrap

import numpy as np
import pytest
import torch

import nearkin
from nearkin import evaluation
from nearkin.errors import NearkinError
from nearkin.evaluation.inputs import Sets, make_sets
from nearkin.evaluation.metrics import Ranked
from nearkin.evaluation.retrieval import Evaluation, bootstrap_over_classes, evaluate
from nearkin.evaluation.search import Neighbours, neighbours
from nearkin.progress import bar as progress_bar
from nearkin.registry import METRICS


def data(n=60, dim=8, classes=6):
    random = np.random.default_rng(0)
    labels = np.arange(n) % classes
    return random.normal(size=(classes, dim))[labels] + random.normal(size=(n, dim)), labels


def test_whatever_the_container():
    z, labels = data()
    expected = evaluate(z.astype(np.float32), labels).metrics
    names = np.array([f"class {label}" for label in labels])
    for embeddings, y in (
        (torch.from_numpy(z).float(), torch.from_numpy(labels)),
        (torch.from_numpy(z).float().requires_grad_(), names.tolist()),
        (z.astype(np.float32).tolist(), names),
        (np.asfortranarray(z.astype(np.float32)), names.astype(object)),
        (z.astype(np.float32), labels.astype(float) - 0.5),
    ):
        assert evaluate(embeddings, y).metrics == expected


def test_default_metrics_and_json():
    z, labels = data()
    told = json.loads(json.dumps(evaluate(z, labels).to_dict()))
    assert told["n"] == 60
    assert list(told["metrics"]) == [
        "recall@1",
        "recall@2",
        "recall@4",
        "recall@8",
        "p@1",
        "r_precision",
        "map_at_r",
        "map_at_c",
        "mrr",
    ]
    assert told["excluded"] == {}


def test_metric_is_the_old_name_of_distance():
    z, labels = data()
    told = evaluate(z, labels, metric="euclid").to_dict()
    assert told == evaluate(z, labels, distance="euclid").to_dict()
    assert told == evaluate(z, labels, distance="euclid", metric="euclid").to_dict()
    assert told["metric"] == told["distance"] == "euclid"
    assert evaluate(z, labels).metric == evaluate(z, labels).distance == "cosine"
    with pytest.raises(AttributeError):
        evaluate(z, labels).metric = "snr"
    z = torch.from_numpy(z)
    old, new = neighbours(z, z, 3, metric="euclid"), neighbours(z, z, 3, distance="euclid")
    assert torch.equal(old.similarity, new.similarity)
    with pytest.raises(NearkinError, match="metric is the old name of distance"):
        neighbours(z, z, 3, distance="snr", metric="euclid")


@pytest.mark.parametrize("name", METRICS.names())
def test_help_of_a_metric(name):
    """`nearkin list metrics` shows the first paragraph, so that it has one line."""
    doc = inspect.getdoc(METRICS[name])
    assert "\n" not in doc.partition("\n\n")[0]
    wanted = ["\n    ", "Range: ", "Source: ", "Parameters:"] + ["Lone queries"] * (METRICS[name].kind == "query")
    assert [words for words in wanted if words not in doc] == []


SHOWN = [Evaluation, Neighbours, Ranked, Sets, evaluate, neighbours, bootstrap_over_classes]


@pytest.mark.parametrize("thing", SHOWN, ids=lambda thing: thing.__name__)
def test_the_example_runs(thing):
    z, labels = data()
    space = {
        "nearkin": nearkin,
        "torch": torch,
        "np": np,
        "Ranked": Ranked,
        "make_sets": make_sets,
        "embeddings": torch.from_numpy(z),
        "labels": torch.from_numpy(labels),
    }
    exec(textwrap.dedent(inspect.getdoc(thing).partition("\nExample:\n")[2]), space)


def test_public_names():
    assert all(callable(getattr(evaluation, name)) for name in evaluation.__all__)
    assert evaluation.metrics is nearkin.metrics
    assert evaluation.evaluate is nearkin.evaluate


def test_the_default_k_stays_inside_a_small_gallery():
    assert list(evaluate(np.eye(4) + 1, [0, 0, 1, 1], metrics=["recall"]).metrics) == ["recall@1", "recall@2"]


def test_names_without_k_take_every_k():
    z, labels = data()
    assert list(evaluate(z, labels, metrics=["p", "recall@3"], k=(1, 10)).metrics) == ["p@1", "p@10", "recall@3"]
    assert list(evaluate(z, labels, metrics=["recall"], k=7).metrics) == ["recall@7"]


def test_masks_and_indices_are_the_same():
    z, labels = data()
    mask = np.arange(60) < 20
    a = evaluate(z, labels, query=mask, gallery=~mask)
    b = evaluate(z, labels, query=np.arange(20), gallery=np.arange(20, 60))
    c = evaluate(z[:20], labels[:20], gallery=(z[20:], labels[20:]))
    assert a.metrics == b.metrics == c.metrics
    assert (a.n, a.gallery) == (20, 40)


def test_lone_queries_are_counted_and_told():
    z, labels = data()
    labels = labels.astype(str)
    labels[5] = "alone"
    result = evaluate(z, labels)
    assert result.excluded["lone_queries"] == 1
    assert "0 in recall@1" in result.excluded["reason"]
    assert "left out of p@1" in result.excluded["reason"]
    assert np.isnan(result.per_query["map_at_r"][5])
    assert result.per_query["recall@8"][5] == result.per_query["map_at_c"][5] == 0
    assert result.labels[5] == "alone"


def nan_row(z):
    z[[7, 9], 3] = np.nan
    z[20, 0] = np.inf
    return z


def zero_row(z):
    z[4] = 0
    return z


BAD = {
    "nan": (lambda z, y: (nan_row(z), y), {}, r"NaN or infinity in 3 embedding rows \(7, 9, 20\) of 60"),
    "zero": (lambda z, y: (zero_row(z), y), {}, r"cosine: zero vectors.*1 embedding row \(4\).*euclid"),
    "constant": (lambda z, y: (zero_row(z), y), {"distance": "snr"}, "constant vectors have no variance"),
    "too long": (lambda z, y: (z * 1e30, y), {}, "length 1e"),
    "length": (lambda z, y: (z, y[:-1]), {}, r"60 embeddings but labels of shape \(59,\)"),
    "one class": (lambda z, y: (z, y * 0), {}, "one class only"),
    "singletons": (lambda z, y: (z, np.arange(60)), {}, "every class has one item"),
    "vector": (lambda z, y: (z[:, 0], y), {}, r"shape \(60,\); \(N, D\)"),
    "no columns": (lambda z, y: (z[:, :0], y), {}, r"shape \(60, 0\)"),
    "cube": (lambda z, y: (z[None], y), {}, r"shape \(1, 60, 8\)"),
    "empty": (lambda z, y: (z[:0], y[:0]), {}, "nothing to rank"),
    "single": (lambda z, y: (z[:1], y[:1]), {}, "nothing to rank"),
    "objects": (lambda z, y: (z.astype(object), y), {}, "embeddings have dtype object"),
    "label objects": (lambda z, y: (z, np.array([{}] * 60)), {}, "labels have dtype object"),
    "label nan": (lambda z, y: (z, np.where(y == 0, np.nan, y)), {}, r"10 label rows .*24 and 5 more\)"),
    "matrix of labels": (lambda z, y: (z, y[:, None]), {}, r"labels of shape \(60, 1\)"),
    "complex": (lambda z, y: (z.astype(complex), y), {}, "dtype complex"),
    "k too large": (lambda z, y: (z, y), {"k": 60}, "recall@60: k=60, but the gallery offers 59"),
    "k zero": (lambda z, y: (z, y), {"metrics": ["recall@0"]}, "recall@0"),
    "k words": (lambda z, y: (z, y), {"metrics": ["recall@x"]}, "k=x; a whole number"),
    "negative k": (lambda z, y: (z, y), {"k": -1}, "k=-1"),
    "no k wanted": (lambda z, y: (z, y), {"metrics": ["map_at_r@3"]}, "takes no k"),
    "unknown metric": (lambda z, y: (z, y), {"metrics": ["map_at_rr"]}, "did you mean map_at_r"),
    "unknown distance": (lambda z, y: (z, y), {"distance": "l2"}, "unknown distance 'l2'"),
    "two distances": (lambda z, y: (z, y), {"distance": "cosine", "metric": "snr"}, "metric is the old name"),
    "unknown setting": (lambda z, y: (z, y), {"metrics": ["rho"], "settings": {"rho.dorp": 1}}, "did you mean drop"),
    "drop": (lambda z, y: (z, y), {"metrics": ["rho"], "settings": {"rho.drop": 8}}, "drop=8"),
    "mask length": (lambda z, y: (z, y), {"query": np.ones(5, bool)}, "mask of shape"),
    "index range": (lambda z, y: (z, y), {"gallery": [0, 99]}, "0 to 59 are possible"),
    "index twice": (lambda z, y: (z, y), {"gallery": [0, 0, 1]}, "has an index more than once"),
    "absent classes": (lambda z, y: (z, y), {"query": [0, 6], "gallery": [1, 2, 3]}, "absent from"),
    "other dimension": (lambda z, y: (z, y), {"gallery": (np.ones((5, 3)), np.arange(5))}, "8 dim.*gallery 3"),
    "other labels": (lambda z, y: (z, y), {"gallery": (np.ones((5, 8)), list("abcde"))}, "numbers on one side"),
    "gallery nan": (lambda z, y: (z, y), {"gallery": (np.full((6, 8), np.nan), np.arange(6))}, "6 gal.*4 and 1 more"),
    "small budget": (lambda z, y: (z, y), {"budget_mib": 1}, "budget_mib=1: at least"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    change, arguments, words = BAD[case]
    z, labels = change(*data())
    with pytest.raises(NearkinError, match=words) as error:
        evaluate(z, labels, **arguments)
    assert "\n" not in str(error.value)


def test_zero_vectors_are_fine_under_euclid():
    z, labels = data()
    assert evaluate(zero_row(z), labels, distance="euclid").n == 60


class TestBootstrap:
    def test_covers_the_mean_and_shrinks_with_equal_classes(self):
        z, labels = data(400, classes=20)
        result = evaluate(z, labels, bootstrap=300)
        for key, (low, high) in result.intervals.items():
            assert low <= result.metrics[key] <= high
        same = bootstrap_over_classes({"x": np.tile([0.0, 1.0], 50)}, np.repeat(np.arange(50), 2), resamples=50)
        assert same["x"] == (0.5, 0.5)

    def test_classes_are_drawn_not_queries(self):
        """Classes that are all right or all wrong: the spread is that of 20 draws, though there are 2,000 queries."""
        right = np.repeat(np.arange(20) % 2, 100).astype(float)
        low, high = bootstrap_over_classes({"x": right}, np.repeat(np.arange(20), 100), resamples=2000)["x"]
        assert high - low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(20), rel=0.15)

    def test_same_seed_same_interval(self):
        z, labels = data()
        a, b, c = (evaluate(z, labels, bootstrap=50, seed=seed).intervals for seed in (0, 0, 1))
        assert a == b != c

    def test_undefined_values_are_left_out(self):
        values = np.array([np.nan, 1.0, 1.0, np.nan])
        assert bootstrap_over_classes({"x": values}, [0, 1, 1, 2], resamples=20, seed=1)["x"] == (1.0, 1.0)


def test_table_shows_every_metric_and_what_was_left_out():
    z, labels = data()
    labels[0] = 99
    result = evaluate(z, labels, metrics=["recall@1", "map_at_r", "rho"], bootstrap=20)
    text = str(result)
    shown = f"{100 * result.metrics['map_at_r']:.2f} %"
    for words in ("recall@1", "map_at_r", "rho", "not\u00a0seeds", "59", "1 of 60 queries", shown):
        assert words in text


def test_progress_bar_takes_what_evaluate_reports():
    from rich.console import Console

    z, labels = data()
    with progress_bar(Console(quiet=True)) as progress:
        assert evaluate(z, labels, progress=progress).n == 60
