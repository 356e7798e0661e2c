"""One unit, one verdict: the page says what `nearkin compare` says, also where seeds, folds or settings are unequal."""

import hashlib
import json
import math
import re
import statistics

import numpy as np
import pytest
from pages.test_report_values import data_of, records
from scipy import stats
from stores import add_run, add_study

from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.rows import with_all_folds
from nearkin.comparison.tables import tables_of
from nearkin.errors import NearkinError
from nearkin.evaluation import retrieval
from nearkin.pages._base import Words
from nearkin.pages._build import build
from nearkin.pages._first import definition
from nearkin.pages._page import render
from nearkin.pages._tested import row_name
from nearkin.pages._words import MAP_AT_R
from nearkin.runs.store import Store
from nearkin.statistics.ranks import RankTest

CLOSE, UNTRAINED = {0: 0.50, 1: 0.52, 2: 0.51}, {0: 0.1, 1: 0.1, 2: 0.1}


@pytest.fixture(autouse=True)
def nothing_is_opened(monkeypatch):
    """A page reads what is stored: it opens no test labels and measures nothing."""

    def refuse(*arguments, **options):
        raise AssertionError("the page opened test labels")

    monkeypatch.setattr("nearkin.runs.test.measure", refuse)
    monkeypatch.setattr("nearkin.runs.tested.evaluate", refuse)
    monkeypatch.setattr(Store, "opened", refuse)


def study(root, values, *, axes=("loss",), queries=1000, validation=None, name="toy", words=None, **more):
    """label (or labels) -> seed (or seed and fold) -> test metrics, or the value of map_at_r; validation likewise."""
    cells = []
    for label, own in values.items():
        labels = (label,) if isinstance(label, str) else label
        for key, value in own.items():
            seed, fold = key if isinstance(key, tuple) else (key, None)
            untrained = labels[-1].startswith("untrained")
            settings = {"epochs": 0} if untrained else dict(zip(axes, labels, strict=True))
            metrics = value if isinstance(value, dict) else {"recall@1": value, "map_at_r": value}
            validated = None if validation is None else validation.get(label, {}).get(key)
            run = f"{re.sub('[^a-z0-9]', '', ''.join(labels))[:9]}{seed}{'' if fold is None else fold}".ljust(12, "0")
            if fold is not None:
                settings |= {"protocol": "mlrc", "protocol.fold": fold}
            chosen_by = {more.get("select", "map_at_r"): validated} if validated is not None else None
            add_run(root, run, settings | (words or {}), metrics, seed=seed, queries=queries, validation=chosen_by)
            cells.append(
                {
                    "labels": list(labels),
                    "seed": seed,
                    "fold": fold,
                    "run": run,
                    "baseline": "random_head" if untrained else None,
                }
            )
    add_study(root, name, axes, cells, **more)
    return root


def store_joined(root, metric, values):
    """What `nearkin compare --evaluation concatenated` leaves: loss -> value of its joined folds."""
    gathered = gather(["toy"], root)
    gathered.joined.mkdir(parents=True)
    for group in with_all_folds(gathered.tested):
        runs = [member.run for member in group]
        name = hashlib.sha256(json.dumps([[run.hash for run in runs], retrieval.VERSION]).encode()).hexdigest()[:12]
        kept = {"runs": [run.hash for run in runs], "metrics": {metric: values[group[0].labels["loss"]]}}
        (gathered.joined / f"{name}.json").write_text(json.dumps(kept))


def page_of(root, *names, **options):
    return render(build(gather(list(names) or ["toy"], root), map=False, **options))


def rows_of(html, part):
    return {row["method"]: row for row in records(data_of(html)[part]["table"])}


def words_in(html):
    """The words of a page, without its tags."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html[html.index("<body") : html.index('id="data"')]))


class TestLeaderboard:
    def test_it_says_what_compare_says(self, tmp_path):
        """Unequal seeds; the reference is the row that validation ranks first, and the winner is the sign printed."""
        a = {0: 0.50, 1: 0.501, 2: 0.502, 3: 0.9, 4: 0.9}
        b = {0: 0.60, 1: 0.602, 2: 0.601}
        validation = {"triplet": dict.fromkeys(a, 0.7), "margin": dict.fromkeys(b, 0.3)}
        root = study(tmp_path, {"triplet": a, "margin": b, "untrained": UNTRAINED}, validation=validation)
        html = page_of(root)
        rows, comparison = rows_of(html, "leaderboard-grid"), compare(gather(["toy"], root))[0]
        assert comparison.reference.name == "triplet"
        said = tables_of(comparison)
        (pair,) = [row for row in said["differences"] if row["method"] == "margin"]
        margin = rows_of(html, "differences")["margin"]
        assert margin["against"] == "triplet"
        assert margin["difference"] == pytest.approx(0.1, abs=1e-9)
        assert margin["verdict"] == pair["verdict"]
        assert "margin is ahead by 10.00 points" in margin["verdict"]
        assert (margin["low"], margin["high"], margin["p"]) == (pair["low"], pair["high"], pair["p_holm"])
        for method in said["leaderboard"]:
            row = rows[method["method"]]
            assert (row["best rank"], row["worst rank"]) == (method["rank"], method["rank_high"])
            assert row["map_at_r"] == method["map_at_r"]
        words = words_in(html)
        assert "First: margin, distinguishable from all other trained rows." in words
        assert "One family of 1 comparison, every trained row against triplet, which validation ranks first" in words
        assert "seeds needed" not in words

    def test_untrained_rows_stand_beside_the_family(self, tmp_path):
        validation = {"triplet": dict.fromkeys(range(3), 0.5), "margin": dict.fromkeys(range(3), 0.6)}
        values = {"triplet": CLOSE, "margin": {0: 0.6, 1: 0.6, 2: 0.62}, "untrained": UNTRAINED}
        root = study(tmp_path, values, validation=validation)
        html = page_of(root)
        row = rows_of(html, "differences")["untrained"]
        assert row["difference"] == pytest.approx(0.1 - np.mean([0.6, 0.6, 0.62]))
        assert (row["p"], row["outcome"]) == (None, None)
        assert rows_of(html, "leaderboard-grid")["untrained"]["best rank"] is None
        assert row["verdict"] == "untrained: beside the family, not tested"

    def test_the_parts_of_an_interval_are_shown(self, tmp_path):
        rng, cells = np.random.default_rng(0), []
        for loss, level in (("triplet", 0.4), ("margin", 0.6)):
            for seed in range(4):
                by_class = {f"c{c}": np.clip(level + 0.1 * rng.normal(size=5), 0, 1) for c in range(6)}
                mean = float(np.mean(list(by_class.values())))
                run = f"{loss}{seed}".ljust(12, "0")
                add_run(
                    tmp_path,
                    run,
                    {"loss": loss},
                    {"map_at_r": mean, "recall@1": mean},
                    seed=seed,
                    queries=30,
                    per_query={"map_at_r": by_class},
                    validation={"map_at_r": level},
                )
                cells.append({"labels": [loss], "seed": seed, "run": run})
        add_study(tmp_path, "toy", ["loss"], cells)
        html = page_of(tmp_path)
        row = rows_of(html, "differences")["triplet"]
        (said,) = tables_of(compare(gather(["toy"], tmp_path))[0])["differences"]
        assert (row["± seeds"], row["± classes"]) == (said["half_over_seeds"], said["half_over_classes"])
        assert None not in (row["± seeds"], row["± classes"])
        assert "± classes" in words_in(html)

    def test_below_three_seeds_there_is_no_verdict(self, tmp_path):
        root = study(
            tmp_path,
            {"triplet": {0: 0.5, 1: 0.5}, "margin": {0: 0.6, 1: 0.6}},
            validation={"triplet": {0: 0.5, 1: 0.5}, "margin": {0: 0.6, 1: 0.6}},
        )
        html = page_of(root)
        row, other = rows_of(html, "differences")["triplet"], rows_of(html, "leaderboard-grid")["triplet"]
        assert row["verdict"] == "no verdict: 2 common seeds, at least three seeds are needed"
        assert (other["best rank"], other["worst rank"], row["p"]) == (1, 2, None)
        words = words_in(html)
        assert "No row is better than another: at least three seeds are needed for a verdict." in words
        assert "distinguishable:" not in words

    def test_without_validation_all_pairs_are_one_family(self, tmp_path):
        root = study(tmp_path, {"triplet": CLOSE, "margin": {0: 0.6, 1: 0.6, 2: 0.62}, "contrastive": CLOSE})
        for file in tmp_path.glob("*/final.json"):
            file.write_text(json.dumps(json.loads(file.read_text()) | {"validation": {}}))
        html = page_of(root)
        data = data_of(html)
        assert len(records(data["differences"]["table"])) == 3
        assert "One family of 3 comparisons, all pairs of trained rows" in words_in(html)
        assert "differences-chart" not in data

    def test_intervals_are_cut_at_the_range_and_marked(self, tmp_path):
        root = study(tmp_path, {"triplet": {0: 0.9, 1: 1.0, 2: 1.0}, "margin": CLOSE})
        html = page_of(root)
        row = rows_of(html, "leaderboard-grid")["triplet"]
        assert (row["high"], row["cut"]) == (1.0, True)
        page = build(gather(["toy"], root), map=False)
        grid = next(part for part in page.parts if part.id == "leaderboard-grid")
        assert "100.00*" in page.facts[0][2]
        assert [text for text in grid.table.texts()[0] if text.endswith("100.00*")]
        assert "Intervals that would leave the range of the metric (*) are cut at its end." in words_in(html)
        assert not rows_of(html, "leaderboard-grid")["margin"]["cut"]

    def test_ranks_that_tell_nothing_apart_draw_no_critical_difference(self, tmp_path, monkeypatch):
        infinite = RankTest(1.0, 0.5, math.inf)
        monkeypatch.setattr("nearkin.comparison.tournament.permuted_ranks", lambda values, **options: infinite)
        html = page_of(study(tmp_path, {"triplet": CLOSE, "margin": CLOSE, "contrastive": CLOSE}))
        assert "ranks of 3 seeds tell no two methods apart" in words_in(html)
        assert data_of(html)["ranks-chart"]["figure"]["layout"]["annotations"] == []

    def test_a_study_without_recall(self, tmp_path):
        values = {loss: {seed: {"map_at_r": v} for seed, v in CLOSE.items()} for loss in ("triplet", "margin")}
        root = study(tmp_path, values, metrics=["map_at_r"], readings=["chosen", "test_best"])
        assert rows_of(page_of(root), "leaderboard-grid").keys() == {"triplet", "margin"}


class TestWithoutTraining:
    def test_pretrained_networks_are_not_called_untrained(self, tmp_path):
        """Beside pictures and on the first screen a row says how it came by its weights."""
        root = study(tmp_path, {"triplet": CLOSE, "untrained": UNTRAINED})
        (row,) = [method for method in compare(gather(["toy"], root))[0].methods if not method.trained]
        assert row_name(row) == row.name
        for member in row.members:
            member.settings["model.weights"] = "imagenet"
        assert row_name(row) == f"{row.name}, pretrained, not trained on your images"

    @pytest.mark.parametrize(("metric", "words"), [("map_at_r", []), ("recall@1", [MAP_AT_R])])
    def test_map_at_r_is_defined_where_it_first_stands(self, metric, words):
        """The typical query shows its MAP@R, whatever the page is about."""
        assert definition(metric, [Words("a query")]) == words
        assert definition(metric, []) == []


class TestLowIsBetter:
    """Hubness, and the spectral decay rho, are better where they are low."""

    def test_order_and_words(self, tmp_path):
        values = {
            loss: {seed: {"map_at_r": 0.5, "recall@1": 0.5, "hubness@1": v + 0.01 * seed} for seed in range(3)}
            for loss, v in (("triplet", 0.9), ("margin", 0.1), ("contrastive", 0.5))
        }
        html = page_of(study(tmp_path, values), metric="hubness@1")
        assert list(rows_of(html, "leaderboard-grid")) == ["margin", "contrastive", "triplet"]
        assert rows_of(html, "leaderboard-grid")["margin"]["best rank"] == 1
        assert "First: margin, distinguishable" in words_in(html)
        assert list(rows_of(html, "tournament")) == ["margin", "contrastive", "triplet"]

    def test_untrained_networks_that_are_better_are_told(self, tmp_path):
        values = {
            loss: {seed: {"map_at_r": 0.5, "hubness@1": v} for seed in range(3)}
            for loss, v in (("triplet", 0.9), ("margin", 0.1), ("untrained", 0.5))
        }
        words = words_in(page_of(study(tmp_path, values), metric="hubness@1"))
        assert "1 of 2 trained rows is worse, on common seeds and not tested" in words

    def test_the_lowest_validation_chooses_p_switch(self, tmp_path):
        axes, values, validation = ("regulariser.p_switch",), {}, {}
        for p, select in (("0.0", 0.5), ("0.1", 0.2), ("0.2", 0.8)):
            values[p,] = dict.fromkeys(range(3), float(p) + 0.3)
            validation[p,] = dict.fromkeys(range(3), select)
        root = study(
            tmp_path,
            values,
            axes=axes,
            validation=validation,
            select="rho",
            words={"loss": "margin", "regulariser": "rho"},
        )
        bars = records(data_of(page_of(root))["rho-switching"]["table"])
        assert [row["p_switch"] for row in bars] == [0.0, 0.1]

    def test_metrics_without_a_good_end_rank_nothing(self, tmp_path):
        values = {
            loss: {seed: {"map_at_r": 0.5, "recall@1": 0.5, "pi_ratio": v + 0.01 * seed} for seed in range(3)}
            for loss, v in (("triplet", 0.9), ("margin", 0.1), ("contrastive", 0.5))
        }
        html = page_of(study(tmp_path, values), metric="pi_ratio")
        words = words_in(html)
        assert "neither end of this metric is the good one" in words
        assert "is ahead by" not in words
        assert "tournament" not in data_of(html)
        assert all(row["best rank"] is None for row in rows_of(html, "leaderboard-grid").values())

    def test_joined_folds_are_sorted_by_the_good_end(self, tmp_path):
        values = {(seed, fold): {"map_at_r": 0.5, "hubness@1": 0.5} for seed in range(3) for fold in range(2)}
        root = study(tmp_path, {"triplet": values, "margin": values}, evaluations=["separated", "concatenated"])
        store_joined(root, "hubness@1", {"triplet": 0.9, "margin": 0.1})
        html = page_of(root, metric="hubness@1")
        assert {name: row["hubness@1"] for name, row in rows_of(html, "joined-folds").items()} == {
            "margin": pytest.approx(0.1),
            "triplet": pytest.approx(0.9),
        }
        assert list(rows_of(html, "joined-folds")) == ["margin", "triplet"]


class TestUnequal:
    def test_the_gain_of_a_reading_is_taken_on_common_seeds(self, tmp_path):
        """Every epoch of every run is its chosen one: whatever is read, the gain is 0. One run has no curve."""
        cells = []
        for seed, value in {0: 0.6, 1: 0.6, 2: 0.42}.items():
            metrics = {"recall@1": value, "map_at_r": value}
            curve = [metrics, metrics] if seed < 2 else None
            add_run(
                tmp_path,
                f"triplet{seed}".ljust(12, "0"),
                {"loss": "triplet"},
                metrics,
                seed=seed,
                queries=10,
                curve=curve,
            )
            cells.append({"labels": ["triplet"], "seed": seed, "run": f"triplet{seed}".ljust(12, "0")})
        add_study(tmp_path, "toy", ["loss"], cells, readings=["chosen", "last", "test_best"])
        html = page_of(tmp_path)
        rows = records(data_of(html)["readings-grid"]["table"])
        others = [row for row in rows if row["epoch"] != "chosen by its rule"]
        assert len(others) == 3
        assert all(row["against chosen"] == 0 and row["common seeds"] == 2 for row in others)
        assert "Picking them so gives +0.00 points" in words_in(html)

    def test_a_missing_fold_gives_the_number_of_compare(self, tmp_path):
        whole = {(seed, fold): 0.4 + 0.1 * fold + 0.01 * seed for seed in range(3) for fold in range(3)}
        part = {key: value for key, value in whole.items() if key != (2, 2)} | {(3, 0): 0.1}
        root = study(tmp_path, {"triplet": part, "margin": whole})
        html = page_of(root)
        for method in compare(gather(["toy"], root))[0].methods:
            row = rows_of(html, "leaderboard-grid")[method.name]
            assert (row["map_at_r"], row["seeds"]) == (method.interval.mean, method.interval.n)
            assert row["recall@1"] == method.interval.mean
        triplet = [statistics.fmean(part[seed, fold] for fold in range(3)) for seed in (0, 1)]
        assert rows_of(html, "leaderboard-grid")["triplet"]["map_at_r"] == pytest.approx(statistics.fmean(triplet))
        both = page_of(root, published="thesis_t6c")
        published = [row for row in records(data_of(both)["published"]["table"]) if row["from"].startswith("here")]
        assert {row["method"]: row["R@1"] for row in published} == {
            name: 100 * row["recall@1"] for name, row in rows_of(html, "leaderboard-grid").items()
        }

    def test_sizes_are_the_rows_of_the_leaderboard(self, tmp_path):
        values = {("16", "margin"): {0: 0.1, 1: 0.2, 2: 0.3}, ("64", "margin"): {0: 0.5, 1: 0.6}}
        html = page_of(study(tmp_path, values, axes=("dim", "loss")))
        lines = {row["embedding size"]: row for row in records(data_of(html)["by-dim"]["table"])}
        board = {row["dim"]: row for row in records(data_of(html)["leaderboard-grid"]["table"])}
        assert {str(size): row["map_at_r"] for size, row in lines.items()} == {
            size: row["map_at_r"] for size, row in board.items()
        }
        assert lines[16]["high"] == pytest.approx(0.2 + stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3))
        assert "not all over the same seeds" in words_in(html)

    def test_settings_beside_the_rows_are_averaged_for_each_seed(self, tmp_path):
        """Two sizes of one loss; of the larger one a seed is missing, so that seed does not count."""
        values = {("16", "margin"): {0: 0.9, 1: 1.0, 2: 0.5}, ("64", "margin"): {0: 0.8, 1: 1.0}}
        root = study(tmp_path, values, axes=("dim", "loss"))
        for file in root.glob("*/final.json"):
            seconds = {"16margin0000": 10.0, "16margin1000": 30.0, "16margin2000": 500.0}.get(file.parent.name, 40.0)
            file.write_text(json.dumps(json.loads(file.read_text()) | {"seconds": seconds}))
        html = page_of(root, by=["loss"])
        row = rows_of(html, "time")["margin"]
        assert (row["seconds"], row["map_at_r"]) == (pytest.approx((25 + 35) / 2), pytest.approx((0.85 + 1) / 2))
        lines = {row["embedding size"]: row for row in records(data_of(html)["by-dim"]["table"])}
        assert (lines[64]["high"], lines[64]["cut"]) == (1.0, True)
        assert "Intervals that would leave the range of the metric are cut at its end." in words_in(html)

    def test_p_switch_is_chosen_on_common_seeds(self, tmp_path):
        """0.1 has one lucky seed more; on common seeds 0.2 validates better."""
        values = {
            ("0.0",): dict.fromkeys(range(4), 0.3),
            ("0.1",): dict.fromkeys(range(4), 0.4),
            ("0.2",): dict.fromkeys(range(3), 0.5),
        }
        validation = {("0.1",): {0: 0.4, 1: 0.4, 2: 0.4, 3: 0.9}, ("0.2",): dict.fromkeys(range(3), 0.45)}
        root = study(
            tmp_path,
            values,
            axes=("regulariser.p_switch",),
            validation=validation,
            words={"loss": "margin", "regulariser": "rho"},
        )
        assert [row["p_switch"] for row in records(data_of(page_of(root))["rho-switching"]["table"])] == [0.0, 0.2]

    def test_untrained_networks_are_counted_on_common_seeds(self, tmp_path):
        """The trained row's mean is lower because of a seed that the untrained network has not."""
        untrained = dict.fromkeys(range(3), 0.45)
        root = study(tmp_path, {"triplet": {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.0}, "untrained": untrained})
        assert "what is better was learned" in words_in(page_of(root))

    def test_single_runs_of_other_settings_are_other_rows(self, tmp_path):
        for epochs in (4, 40, 400):
            add_run(
                tmp_path,
                f"epochs{epochs}".ljust(12, "x"),
                {"loss": "margin", "epochs": epochs},
                {"map_at_r": epochs / 1000, "recall@1": 0.5},
                seed=epochs,
                queries=10,
            )
        html = page_of(tmp_path, str(tmp_path))
        assert rows_of(html, "leaderboard-grid").keys() == {f"margin, epochs {n}" for n in (4, 40, 400)}

    def test_runs_of_different_seeds_are_not_subtracted(self, tmp_path):
        add_run(tmp_path, "trained00000", {"loss": "margin"}, {"map_at_r": 0.5}, seed=0, queries=10)
        add_run(tmp_path, "untrained000", {"epochs": 0}, {"map_at_r": 0.2}, seed=7, queries=10)
        for name in ("trained00000", "untrained000"):
            (tmp_path / name / "split.json").write_text("{}")
        words = words_in(page_of(tmp_path, "trained00000"))
        assert "its seed is 7, not 0: no difference is taken" in words
        assert "training gave" not in words

    def test_curves_say_where_runs_have_stopped(self, tmp_path):
        """Two seeds with curves of two and three epochs: the last point stands on one run."""
        cells = []
        for seed, epochs in ((0, 2), (1, 3)):
            metrics = {"recall@1": 0.5, "map_at_r": 0.5}
            run = f"triplet{seed}".ljust(12, "0")
            add_run(tmp_path, run, {"loss": "triplet"}, metrics, seed=seed, queries=10, curve=[metrics] * epochs)
            (tmp_path / run / "log.jsonl").write_text("")
            cells.append({"labels": ["triplet"], "seed": seed, "run": run})
        add_study(tmp_path, "toy", ["loss"], cells)
        html = page_of(tmp_path)
        assert [row["runs"] for row in records(data_of(html)["curve-test"]["table"])] == [2, 2, 1]
        assert "Not all runs of a method have all epochs" in words_in(html)


class TestNothingIsMeasured:
    def test_a_missing_metric_is_a_line_with_its_command(self, tmp_path):
        root = study(tmp_path, {"triplet": CLOSE, "margin": CLOSE}, metrics=["recall@1", "map_at_r", "nmi"])
        html = page_of(root)
        assert "NMI is not stored for 6 of 6 runs; `nearkin compare toy --metric nmi` measures it" in words_in(html)
        assert "nmi" not in data_of(html)["leaderboard-grid"]["table"]["header"]
        with pytest.raises(NearkinError, match="nearkin compare toy --metric nmi"):
            page_of(root, metric="nmi")

    def test_joined_folds_that_are_not_stored_are_a_line(self, tmp_path):
        values = {(seed, fold): 0.5 for seed in range(3) for fold in range(2)}
        root = study(tmp_path, {"triplet": values, "margin": values}, evaluations=["separated", "concatenated"])
        command = "nearkin compare toy --metric map_at_r --evaluation concatenated"
        assert f"MAP@R of joined folds is not stored; `{command}` measures it." in words_in(page_of(root))


class TestPublished:
    """A cell of ours stands in a part of a table only where data set, evaluation and size are those of the part."""

    def here(self, root, table):
        rows = records(data_of(page_of(root, published=table))["published"]["table"])
        return next(row for row in rows if row["from"].startswith("here"))

    def runs(self, root, *, data="cub", dim=128, folds=4, metrics=None, **more):
        metrics = metrics or {"p@1": 0.5, "recall@1": 0.5, "map_at_r": 0.25, "r_precision": 0.3}
        keys = [(seed, fold) for seed in range(3) for fold in range(folds)] if folds else range(3)
        root = study(root, {"margin": dict.fromkeys(keys, metrics)}, words={"dataset": data, "dim": dim}, **more)
        return root

    def test_folds_fill_their_part_alone(self, tmp_path):
        root = self.runs(tmp_path)
        row = self.here(root, "hist_t8")
        assert (row["separated P@1"], row["separated MAP@R"]) == (50, 25)
        assert row["concatenated P@1"] is row["concatenated MAP@R"] is None
        store_joined(root, "p@1", {"margin": 0.75})
        row = self.here(root, "hist_t8")
        assert (row["concatenated P@1"], row["separated P@1"]) == (75, 50)

    @pytest.mark.parametrize(
        ("other", "why"),
        [({"folds": 0}, "no folds"), ({"dim": 512}, "another size"), ({"data": "cars196"}, "other images")],
    )
    def test_what_is_not_of_the_part_fills_nothing(self, tmp_path, other, why):
        root = self.runs(tmp_path, **other)
        if "folds" not in other:
            store_joined(root, "p@1", {"margin": 0.75})
        for table in ("hist_t8", "drml_t1"):
            row = self.here(root, table)
            assert all(value is None for name, value in row.items() if name not in ("method", "from")), (table, why)

    @pytest.mark.parametrize(
        ("table", "dim"), [("hist_t5", 512), ("hist_t6", 512), ("hist_t10", 64), ("hist_t11", 512)]
    )
    def test_a_data_set_fills_its_part_alone(self, tmp_path, table, dim):
        row = self.here(self.runs(tmp_path / "a", data="cars196", dim=dim, folds=0), table)
        filled = {name for name, value in row.items() if value is not None and name not in ("method", "from")}
        assert filled == {"Cars196 R@1"}
        row = self.here(self.runs(tmp_path / "b", data="cars196", dim=2 * dim, folds=0), table)
        assert row["Cars196 R@1"] is None

    def test_a_table_without_parts_takes_every_row(self, tmp_path):
        assert self.here(self.runs(tmp_path, dim=16, folds=0), "thesis_t6c")["R@1"] == 50
