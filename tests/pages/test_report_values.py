"""The numbers of a page are those of the store, read here in plain loops over result.json."""

import json
import math
import re
import statistics
from html.parser import HTMLParser

import pytest
from pages.stored import CLASSES, LOSSES, METRICS, ROOT, plain_study, write_run, write_study
from scipy import stats

from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.pages._build import build
from nearkin.pages._page import render


def data_of(html):
    """The JSON of a page, as a browser finds it."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])


def records(table):
    return [dict(zip(table["header"], row, strict=True)) for row in table["rows"]]


def page_of(names, root, **options):
    return render(build(gather(names, root), map=False, **options))


def stored(root, name):
    """label -> seed -> result, from the files alone."""
    found = {}
    for cell in json.loads((root / "studies" / name / "study.json").read_text())["cells"]:
        file = root / cell["run"] / "result.json"
        if file.exists():
            found.setdefault(", ".join(cell["labels"]), {})[cell["seed"]] = json.loads(file.read_text())
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    root = tmp_path_factory.mktemp("plain") / "runs"
    plain_study(root)
    return root, page_of(["plain"], root)


def test_leaderboard_equals_the_files(plain):
    root, html = plain
    rows = {row["method"]: row for row in records(data_of(html)["leaderboard-grid"]["table"])}
    expected = stored(root, "plain")
    assert rows.keys() == expected.keys()
    for label, seeds in expected.items():
        values = [result["test"]["map_at_r"] for result in seeds.values()]
        mean = sum(values) / len(values)
        half = stats.t.ppf(0.975, 2) * statistics.stdev(values) / math.sqrt(3)
        assert rows[label]["map_at_r"] == pytest.approx(mean)
        assert (rows[label]["low"], rows[label]["high"]) == (pytest.approx(mean - half), pytest.approx(mean + half))
        recall = [result["test"]["recall@1"] for result in seeds.values()]
        assert rows[label]["recall@1"] == pytest.approx(sum(recall) / 3)
    means = [row["map_at_r"] for row in records(data_of(html)["leaderboard-grid"]["table"])]
    assert means == sorted(means, reverse=True)


def test_the_table_shows_what_the_json_holds(plain):
    _, html = plain

    class Cells(HTMLParser):
        rows, inside, text = [], False, ""

        def handle_starttag(self, tag, attrs):
            if tag == "div":
                self.inside = self.inside or ("id", "leaderboard-grid") in attrs
            if tag == "tr" and self.inside:
                self.rows.append([])
            if tag in ("td", "th") and self.inside:
                self.text = ""

        def handle_data(self, data):
            self.text += data

        def handle_endtag(self, tag):
            if tag in ("td", "th") and self.inside:
                self.rows[-1].append(self.text)
            if tag == "table":
                self.inside = False

    reader = Cells()
    reader.feed(html)
    header, *shown = reader.rows
    table = records(data_of(html)["leaderboard-grid"]["table"])
    assert [row[header.index("method")] for row in shown] == [row["method"] for row in table]
    assert [row[header.index("MAP@R %")] for row in shown] == [f"{100 * row['map_at_r']:.2f}" for row in table]


def test_times_curves_and_recalls_equal_the_files(plain):
    root, html = plain
    data, expected = data_of(html), stored(root, "plain")
    for row in records(data["time"]["table"]):
        assert row["seconds"] == pytest.approx(statistics.fmean(r["seconds"] for r in expected[row["method"]].values()))
    points = records(data["curve-validation"]["table"])
    assert len(points) == 3 * len(LOSSES)
    for point in points:
        values = []
        for result in expected[point["method"]].values():
            lines = [json.loads(line) for line in (root / result["hash"] / "log.jsonl").read_text().splitlines()]
            values += [x["validation"]["map_at_r"] for x in lines if x.get("epoch_end") == point["epoch"]]
        assert (point["map_at_r"], point["low"], point["high"]) == (
            pytest.approx(sum(values) / 3),
            min(values),
            max(values),
        )
    bars = records(data["recall-by-year"]["table"])
    assert [bar["year"] for bar in bars] == sorted(bar["year"] for bar in bars)
    assert {bar["metric"] for bar in bars} == {"Recall@1", "Recall@2", "Recall@4", "Recall@8"}
    one = next(bar for bar in bars if bar["method"] == "triplet (2015)" and bar["metric"] == "Recall@4")
    assert one["recall"] == pytest.approx(statistics.fmean(r["test"]["recall@4"] for r in expected["triplet"].values()))


def test_ranks_equal_a_loop(plain):
    root, html = plain
    expected = {label: own for label, own in stored(root, "plain").items() if "untrained" not in label}
    total = dict.fromkeys(expected, 0)
    for seed in (0, 1, 2):
        for label in expected:
            mine = expected[label][seed]["test"]["map_at_r"]
            total[label] += 1 + sum(own[seed]["test"]["map_at_r"] > mine for own in expected.values())
    assert {row["method"]: row["total"] for row in records(data_of(html)["tournament"]["table"])} == total


def test_correlations_equal_scipy(plain):
    root, html = plain
    results = [r for label, own in stored(root, "plain").items() if "untrained" not in label for r in own.values()]
    for row in records(data_of(html)["metric-correlation"]["table"]):
        a, b = (
            [r["train"]["rho"] if m == "train.rho" else r["test"][m] for r in results]
            for m in (row["metric"], row["with"])
        )
        assert row["correlation"] == pytest.approx(stats.pearsonr(a, b).statistic)
    assert {row["metric"] for row in records(data_of(html)["metric-correlation"]["table"])} == {*METRICS, "train.rho"}


def test_figures_draw_their_tables(plain):
    """Traces hold the numbers of the table beside them, per cent where they are shares."""
    for part in data_of(plain[1]).values():
        if "figure" not in part or part["figure"]["data"][0]["type"] == "heatmap":
            continue
        drawn = [
            v
            for trace in part["figure"]["data"]
            if trace.get("hoverinfo") != "skip"
            for v in (*trace["x"], *trace["y"])
        ]
        numbers = [v for row in part["table"]["rows"] for v in row if isinstance(v, float)]
        for value in (v for v in drawn if isinstance(v, float)):
            assert any(math.isclose(value, n) or math.isclose(value, 100 * n) for n in numbers)


def test_a_failed_run_is_named(plain):
    html = plain[1]
    row = records(data_of(html)["runs-without-result"]["table"])[0]
    assert row["method"] == "histogram seed 0"
    assert "out of memory" in row["why"]
    assert "1 of 19 runs have no result" in html


def test_no_path_of_the_machine_is_in_the_page(plain):
    root, html = plain
    for secret in (str(root), ROOT, "zork99", "My Photos", "/opt/secret", "-laptop"):
        assert secret not in html
    assert "…/birds" in html
    assert "x.py line 3" in html


def test_foreign_names_are_text(plain):
    html = plain[1]
    assert "<b>margin</b>" not in html
    assert "&lt;b&gt;margin&lt;/b&gt;" in html
    inside = re.search(r'id="data">(.*?)</script>', html, re.S)[1]
    assert not set("<>&\u2028\u2029") & set(inside)
    assert html.count("<script>alert") == 0
    assert "<b>margin</b>" in {row["method"] for row in records(data_of(html)["leaderboard-grid"]["table"])}


def test_one_seed_has_no_interval_and_says_so(tmp_path):
    plain_study(tmp_path / "runs", seeds=(7,), failed=False)
    html = page_of(["plain"], tmp_path / "runs")
    rows = records(data_of(html)["leaderboard-grid"]["table"])
    assert all(row["low"] is None for row in rows)
    assert all(row["p"] is None for row in records(data_of(html)["differences"]["table"]))
    assert "With one seed there is no interval" in html
    assert "one seed: no interval" in html
    assert "All 6 runs have a result" in html


def test_two_data_sets_have_two_leaderboards(tmp_path):
    root, cells = tmp_path / "runs", []
    for data, hash in (("folder", "a" * 16), ("glyphs", "b" * 16)):
        for loss, level in (("triplet", 0.3), ("margin", 0.6)):
            for seed in (0, 1):
                words = {"loss": loss, "dataset": data} | (
                    {"root": None, "data.classes": 8, "data.per_class": 4} if data == "glyphs" else {}
                )
                cells.append(((data, loss), seed, write_run(root, words, level, seed=seed, data=hash), None))
    write_study(root, "two", cells, axes=("dataset", "loss"))
    data = data_of(page_of(["two"], root))
    expected = stored(root, "two")
    for name, label in (("birds", "folder"), ("glyphs", "glyphs")):
        for row in records(data[f"leaderboard-grid-{name}"]["table"]):
            own = expected[f"{label}, {row['method']}"]
            assert row["map_at_r"] == pytest.approx(statistics.fmean(r["test"]["map_at_r"] for r in own.values()))
    assert {id for id in data if id.startswith("leaderboard-grid")} == {
        "leaderboard-grid-birds",
        "leaderboard-grid-glyphs",
    }


def test_picked_epochs_are_red_and_unequal_budgets_are_told(tmp_path):
    root, cells = tmp_path / "runs", []
    for loss, level in (("triplet", 0.3), ("margin", 0.6)):
        for seed in (0, 1):
            words = {"loss": loss, "epochs": 3 if loss == "triplet" else 6}
            cells.append(((loss,), seed, write_run(root, words, level, seed=seed, curve=True, excluded=3), None))
    write_study(root, "read", cells, readings=["chosen", "last", "test_best"])
    html = page_of(["read"], root)
    assert re.search(r'<p class="words warning">Unequal epochs', html)
    rows = records(data_of(html)["readings-grid"]["table"])
    for row in rows:
        values = []
        for result in stored(root, "read")[row["method"]].values():
            points = [p["metrics"] for p in json.loads((root / result["hash"] / "curve.json").read_text())["epochs"]]
            best = max(points, key=lambda p: p["recall@1"])
            choice = {
                "chosen by its rule": result["test"],
                "last": points[-1],
                "best recall@1, picked on the test images": best,
            }
            values.append(choice.get(row["epoch"], {}).get("map_at_r", max(p["map_at_r"] for p in points)))
        assert row["map_at_r"] == pytest.approx(statistics.fmean(values))
    picked = [i for i, row in enumerate(rows) if "picked on the test images" in row["epoch"]]
    part = html[html.index('id="readings-grid"') :]
    assert picked
    assert all(f'<tr data-row="{i}" class="warning">' in part for i in picked)
    assert {row["lone queries left out"] for row in records(data_of(html)["excluded"]["table"])} == {3}


def test_sizes_are_curves_over_the_one_setting_that_varies(tmp_path):
    root, cells = tmp_path / "runs", []
    for dim in (16, 64, 256):
        for p in (0.0, 0.2):
            for seed in (0, 1):
                words = {"loss": "margin", "dim": dim, "regulariser": "rho", "regulariser.p_switch": p}
                cells.append(((str(dim), str(p)), seed, write_run(root, words, 0.4 + dim / 1000, seed=seed), None))
    write_study(root, "sizes", cells, axes=("dim", "regulariser.p_switch"))
    data = data_of(page_of(["sizes"], root))
    expected = stored(root, "sizes")
    for row in records(data["by-dim"]["table"]):
        own = expected[f"{row['embedding size']}, {row['method']}"]
        assert row["map_at_r"] == pytest.approx(statistics.fmean(r["test"]["map_at_r"] for r in own.values()))
    assert {row["method"] for row in records(data["by-dim"]["table"])} == {"0.0", "0.2"}
    pairs = records(data["rho-switching"]["table"])
    assert {(row["method"], row["p_switch"]) for row in pairs} == {
        (d, p) for d in ("16", "64", "256") for p in (0.0, 0.2)
    }


def logged(root, run, values):
    """A run whose validation was this after epochs 1, 2, ..."""
    lines = [{"epoch_end": epoch, "validation": {"map_at_r": value}} for epoch, value in enumerate(values, 1)]
    (root / run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_convergence_is_the_first_best_epoch_by_kind_of_loss(tmp_path):
    """Losses on pairs are best at epochs 3 to 5, those with proxies at 1 to 3; a tie goes to the first."""
    root, cells = tmp_path / "runs", []
    peaks = {"triplet": (5, 4, 3), "contrastive": (4, 5, 4), "proxy_anchor": (2, 2, 3), "arcface": (1, 2, 1)}
    for loss, epochs in peaks.items():
        for seed, peak in enumerate(epochs):
            run = write_run(root, {"loss": loss}, 0.5, seed=seed)
            values = [0.4 if epoch == peak else 0.4 if epoch > peak else 0.1 for epoch in range(1, 7)]
            cells.append(((loss,), seed, logged(root, run, values), None))
    cells.append((("random_head",), 0, write_run(root, {"epochs": 0}, 0.1), None, {"baseline": "random_head"}))
    write_study(root, "peaks", cells)
    html = page_of(["peaks"], root)
    rows = records(data_of(html)["convergence"]["table"])
    assert [(row["method"], row["kind"]) for row in rows] == [
        ("arcface", "classification"),
        ("proxy_anchor", "classification"),
        ("triplet", "ranking"),
        ("contrastive", "ranking"),
    ]
    means = {loss: statistics.fmean(epochs) for loss, epochs in peaks.items()}
    assert {row["method"]: row["epoch of best map_at_r"] for row in rows} == pytest.approx(means)
    gaps = [statistics.fmean(p[s] for p in list(peaks.values())[:2]) for s in range(3)]
    gaps = [gap - statistics.fmean(p[s] for p in list(peaks.values())[2:]) for s, gap in enumerate(gaps)]
    half = stats.t.ppf(0.975, 2) * statistics.stdev(gaps) / math.sqrt(3)
    mean = statistics.fmean(gaps)
    words = f"the 2 ranking losses minus the 2 classification losses: +{mean:.3f}"
    assert f"{words} (+{mean - half:.3f} to +{mean + half:.3f} over 3 common seeds" in html
    (comparison,) = compare(gather(["peaks"], root), metric="epoch of best map_at_r")
    assert [method.name for method in comparison.methods] == ["arcface", "proxy_anchor", "triplet", "contrastive"]


def test_networks_are_compared_as_published(tmp_path):
    """Batch, step and warm-up belong to a network in the thesis's set-up; a study's own batch does not."""
    root, cells = tmp_path / "runs", []
    for network in ("resnet50", "bn_inception", "googlenet"):
        for loss in ("triplet", "margin"):
            words = {"recipe": "psomas2020", "dataset": "cub", "backbone": network, "loss": loss, "dim": 512}
            if (network, loss) == ("googlenet", "margin"):
                words["train.batch"] = 60
            run = write_run(root, words, 0.5)
            cells.append(((network, loss), 0, run, None))
    write_study(root, "networks", cells, axes=("base", "method"))
    html = page_of(["networks"], root)
    rows = records(data_of(html)["by-backbone"]["table"])
    assert {(row["method"], row["backbone"]) for row in rows} == {
        *(("triplet", network) for network in ("resnet50", "bn_inception", "googlenet")),
        *(("margin", network) for network in ("resnet50", "bn_inception")),
    }
    assert "The recipe has other settings with it: " in html
    assert "train.batch 100 (resnet50), 180 (bn_inception, googlenet)" in html
    assert "train.step 5 (resnet50), 10 (bn_inception, googlenet)" in html
    assert "train.warmup 5 (resnet50), 1 (bn_inception, googlenet)" in html


def test_methods_with_and_without_a_regulariser_stand_beside_each_other(tmp_path):
    """As in Roth et al. 2020, figures 8, 9 and 13: two margins are two, SNR finds its twin, Softmax stands alone."""
    rows = {
        "Margin .6": {"loss": "margin", "loss.beta": 0.6},
        "Margin 1.2": {"loss": "margin"},
        "SNR": {"loss": "snr_triplet"},
        "Softmax": {"loss": "norm_softmax"},
        "R-Margin .6": {"loss": "margin", "loss.beta": 0.6, "regulariser": "rho"},
        "R-SNR": {"loss": "snr_triplet", "regulariser": "rho"},
        "R-SNR .1": {"loss": "snr_triplet", "regulariser": "rho", "regulariser.p_switch": 0.1},
        "Softmax, mixed": {"loss": "norm_softmax", "regulariser": "mixup"},
    }
    root, cells = tmp_path / "runs", []
    for i, (label, words) in enumerate(rows.items()):
        for seed in (0, 1):
            run = write_run(root, {"recipe": "roth2020"} | words, 0.3 + i / 20, seed=seed, validated=False)
            cells.append(((label,), seed, run, None))
    write_study(root, "roth", cells, axes=("method",))
    html = page_of(["roth"], root)
    data, own = data_of(html), stored(root, "roth")
    bars = records(data["rho-switching"]["table"])
    assert [(row["method"], row["regulariser"]) for row in bars] == [
        ("Margin .6", "without"),
        ("Margin .6", "with rho switching"),
        ("Margin 1.2", "without"),
        ("SNR", "without"),
        ("SNR", "rho p_switch=0.1"),  # no validation chooses one of the two
        ("SNR", "rho p_switch=0.35"),
        ("Softmax", "without"),
    ]
    values = [result["test"]["map_at_r"] for result in own["R-Margin .6"].values()]
    assert (bars[1]["map_at_r"], bars[1]["std"]) == pytest.approx((statistics.fmean(values), statistics.stdev(values)))
    mixed = records(data["mixup-decay"]["table"])
    assert [row["regulariser"] for row in mixed if row["method"] == "Softmax"] == ["without", "with mixup"]
    assert len(mixed) == 5
    (curve,) = {row["method"] for row in records(data["by-p-switch"]["table"])}
    assert curve == "SNR"
    assert [row["p_switch"] for row in records(data["by-p-switch"]["table"])] == [0.0, 0.1, 0.35]
    assert "Dashed: p_switch 0" in html
    assert {row["regulariser"] for row in records(data["rho"]["table"])} == {"none", "rho", "mixup"}


@pytest.fixture(scope="module")
def tournament(tmp_path_factory):
    """Three losses by three networks by two sizes, under the recipe of Psomas 2020."""
    root, cells = tmp_path_factory.mktemp("tournament") / "runs", []
    for network in NETWORKS:
        for dim in (128, 512):
            for loss in ("multi_similarity", "triplet", "proxy_anchor"):
                words = {"recipe": "psomas2020", "loss": loss, "backbone": network, "dim": dim}
                for seed in (0, 1):
                    run = write_run(root, words, 0.3 + dim / 4000, seed=seed, validated=False)
                    cells.append(((loss, network, str(dim)), seed, run, None))
    write_study(root, "tournament", cells, axes=("loss", "backbone", "dim"))
    return root


NETWORKS = ("resnet50", "bn_inception", "googlenet")


def test_one_network_and_size_has_its_bars_in_order_of_year(tournament):
    """Psomas 2020, figure 27."""
    gathered = gather(["tournament"], tournament, {"backbone": "resnet50", "dim": 512})
    data = data_of(render(build(gathered, map=False)))
    rows = records(data["recall-by-year"]["table"])
    assert list(dict.fromkeys(row["method"] for row in rows)) == [
        "triplet (2015)",
        "multi_similarity (2019)",
        "proxy_anchor (2020)",
    ]
    own = stored(tournament, "tournament")
    for row in rows:
        of = own[f"{row['method'].split()[0]}, resnet50, 512"]
        metric = row["metric"].lower()
        assert row["recall"] == pytest.approx(statistics.fmean(r["test"][metric] for r in of.values()))
    assert [row["metric"] for row in rows[:4]] == ["Recall@1", "Recall@2", "Recall@4", "Recall@8"]
    assert "by-dim" not in data
    assert "by-backbone" not in data


@pytest.mark.parametrize(
    ("where", "chart", "column", "values"),
    [
        ({"dim": 512}, "by-backbone", "backbone", NETWORKS),  # figure 31: their batches and warm-ups differ
        ({"backbone": "bn_inception"}, "by-dim", "embedding size", (128, 512)),  # figures 28 to 30
    ],
)
def test_a_slice_has_its_curves(tournament, where, chart, column, values):
    data = data_of(render(build(gather(["tournament"], tournament, where), map=False)))
    rows, own = records(data[chart]["table"]), stored(tournament, "tournament")
    assert {(row["method"], row[column]) for row in rows} == {
        (loss, value) for loss in ("multi_similarity", "triplet", "proxy_anchor") for value in values
    }
    for row in rows:
        label = ", ".join(
            str(v) for v in (row["method"], *([row[column], 512] if "dim" in where else ["bn_inception", row[column]]))
        )
        assert row["map_at_r"] == pytest.approx(statistics.fmean(r["test"]["map_at_r"] for r in own[label].values()))


def test_a_single_run_has_a_page(tmp_path):
    root = tmp_path / "runs"
    run = write_run(root, {"loss": "triplet"}, 0.5)
    twin = write_run(root, {"epochs": 0}, 0.1)
    write_run(root, {"epochs": 0}, 0.2, data="e" * 16)  # of other images: no twin
    html = page_of([run], root)
    data = data_of(html)
    result, other = (json.loads((root / name / "result.json").read_text())["test"] for name in (run, twin))
    rows = {row["metric"]: row for row in records(data["result"]["table"])}
    assert {m: row["this run"] for m, row in rows.items()} == result
    assert {m: row["random head"] for m, row in rows.items()} == other
    import pyarrow.parquet as pq

    queries = pq.read_table(root / run / "per_query.parquet").to_pylist()
    for row in records(data["classes-grid"]["table"]):
        own = [q["map_at_r"] for q in queries if q["label"] == row["class"]]
        assert (row["queries"], row["map_at_r"]) == (len(own), pytest.approx(sum(own) / len(own)))
    assert {row["class"] for row in records(data["classes-grid"]["table"])} == set(CLASSES)
    means = [row["map_at_r"] for row in records(data["classes-grid"]["table"])]
    assert means == sorted(means)  # the weakest first
    assert f"nearkin embed {run} IMAGES" in html
    assert "alert(1)</script>" not in html


def test_published_rows_stand_beside_with_what_differs(plain):
    root, _ = plain
    html = page_of(["plain"], root, published="thesis_t6c")
    rows = records(data_of(html)["published"]["table"])
    theirs = next(row for row in rows if row["method"] == "Contrastive")
    assert (theirs["from"], theirs["R@1"], theirs["R@8"]) == ("psomas2020", 64.87, 89.67)
    ours = next(row for row in rows if row["method"] == "triplet")
    values = [r["test"]["recall@1"] for r in stored(root, "plain")["triplet"].values()]
    assert ours["R@1"] == pytest.approx(100 * statistics.fmean(values))
    differ = {row["what"]: row for row in records(data_of(html)["what-differs"]["table"])}
    assert differ["data"] == {"what": "data", "psomas2020": "CUB200-2011", "here": "birds"}
