"""The page of a fit: by the name of the fit and by its model, its numbers against a loop over what is stored."""

import json
from collections import defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest
from pages.stored import write_run
from pages.test_report_values import data_of

import nearkin
from nearkin.errors import NearkinError
from nearkin.fitting._plan import Plan
from nearkin.fitting.fitted import Fitted, Method
from nearkin.runs.store import Store
from nearkin.storage import with_sum

FOLDS = (("wren", "tit", "robin"), ("crow", "<b>jay</b>", "magpie"))
NAME = "fit-01234567"
ASKED = {"words": {"data.name": "folder", "data.root": "my birds", "train.lr": 0.001}, "minutes": 30, "workers": 2}


def stored_fit(root, gained, losses=("proxy_anchor",), divided=FOLDS):
    """A fit of six classes in two folds; training gained so much at every query, in some classes a little more."""
    untrained, trained = [], {name: [] for name in losses}
    for fold, classes in enumerate(divided):
        words = {"protocol": "cross", "protocol.folds": 3, "protocol.fold": fold}
        common = {"queries": 12, "classes": classes, "validated": False, "name": None}
        name = write_run(root, {**words, "epochs": 0, "model.head": "none", "dim": None}, 0.4, **common)
        untrained.append(name)
        for loss in losses:
            name = write_run(root, {**words, "loss": loss}, 0.5, **common)
            before = pq.read_table(root / untrained[-1] / "per_query.parquet")
            gains = [gained + 0.01 * classes.index(name) for name in before["label"].to_pylist()]
            values = {m: np.asarray(before[m]) + gains for m in before.column_names[2:]}
            for place, (metric, column) in enumerate(values.items(), 2):
                before = before.set_column(place, metric, [column])
            pq.write_table(before, root / name / "per_query.parquet")
            trained[loss].append(name)
    last = {} if gained > 0 else {"epochs": 0, "model.head": "none", "dim": None}
    model = write_run(root, {"protocol": "all", **last}, 0.5, validated=False, per_query=False)
    (root / model / "result.json").unlink()
    store = Store(root)
    plan = Plan(len(divided), 0.0, "none", losses, 60.0)
    methods = [Method(name, {"loss": name}, [store.run(run) for run in runs]) for name, runs in trained.items()]
    runs = [store.run(run) for run in untrained]
    counts, asked = (3 * len(divided) or 5,) * 2, {**ASKED, "losses": list(losses)}
    fitted = Fitted(NAME, store, plan, counts, runs, methods, "map_at_r", True, asked)
    fitted.run = store.run(model)
    (root / model / "estimate.json").write_text(json.dumps(fitted.estimate()))
    file = root / "studies" / NAME / "fit.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(with_sum({"used": 1.0, "model": model, "estimate": fitted.estimate()})))
    return fitted


def page(root, name, **options):
    written = nearkin.report(name, runs=root, output=root / "page.html", map=False, **options)
    return written, (root / "page.html").read_text()


@pytest.mark.parametrize(
    ("gained", "words"), [(0.2, "training helps here"), (-0.2, "training does not help here")], ids=["helps", "harms"]
)
def test_it_says_the_verdict_first_and_its_numbers_are_those_of_the_runs(tmp_path, gained, words):
    fitted = stored_fit(tmp_path, gained)
    assert fitted.helps == (gained > 0)
    written, html = page(tmp_path, fitted.run.hash)
    assert words in written.page.title
    assert written.page.lead[0] == fitted.verdict
    assert html.index(words) < html.index("<table")
    assert written.tables[0].rows == fitted.tables[0].rows
    assert f"nearkin embed {fitted.run.hash}" in html
    assert "nearkin fit &#39;my birds&#39; train.lr=0.001 --minutes 30 --workers 2 --losses proxy_anchor" in html
    table = data_of(html)["class-gains"]["table"]
    sums = defaultdict(list)
    for sign, runs in ((1, fitted.chosen), (-1, fitted.untrained)):
        for run in runs:
            for query in pq.read_table(run.path / "per_query.parquet").to_pylist():
                sums[query["label"], sign].append(query["map_at_r"])
    expected = {name: np.mean(sums[name, 1]) - np.mean(sums[name, -1]) for classes in FOLDS for name in classes}
    assert {row[0] for row in table["rows"]} == set(expected)
    for name, gain in table["rows"]:
        assert gain == pytest.approx(expected[name])
        assert (gain > 0) == (gained > 0)
    assert "<b>jay</b>" not in html


@pytest.mark.parametrize(
    ("divided", "words", "parts"),
    [(FOLDS, "nothing was trained", {"result", "classes-grid", "folds"}), ((), "too few classes to say", set())],
    ids=["no time", "five classes"],
)
def test_where_nothing_was_trained_it_has_what_there_is(tmp_path, divided, words, parts):
    fitted = stored_fit(tmp_path, 0.0, (), divided)
    written, html = page(tmp_path, NAME)
    assert words in written.page.title
    assert written.page.lead[0] == fitted.verdict
    assert {"result", "classes-grid", "folds", "class-gains"} & data_of(html).keys() == parts
    assert f"nearkin embed {fitted.run.hash}" in html


def test_its_name_gives_the_same_page(tmp_path):
    fitted = stored_fit(tmp_path, 0.2, ("proxy_anchor", "triplet"))
    pages = [page(tmp_path, name)[1] for name in (fitted.run.hash, fitted.run.hash[:6], NAME)]
    parts = [data_of(html) for html in pages]
    assert parts[0] == parts[1] == parts[2]
    assert [row[0] for row in parts[0]["result"]["table"]["rows"]] == ["proxy_anchor", "triplet", "without training"]
    folds = parts[0]["folds"]["table"]["rows"]
    assert [row[0] for row in folds] == ["1 of 2", "2 of 2", "the model"]
    assert {row[-1] for row in folds[:2]} == {3}


def test_what_it_cannot_show_is_an_error_that_says_why(tmp_path):
    fitted = stored_fit(tmp_path, 0.2)
    with pytest.raises(NearkinError, match=r"by=.*leave it out"):
        page(tmp_path, NAME, by=["loss"])
    with pytest.raises(NearkinError, match=f"nearkin report {fitted.run.hash}"):
        nearkin.compare(fitted.run.hash, runs=tmp_path)
    file = tmp_path / "studies" / NAME / "fit.json"
    file.write_text(json.dumps(with_sum({"used": 1.0})))
    with pytest.raises(NearkinError, match="has not come to its end"):
        page(tmp_path, NAME)
    gone = fitted.untrained[0]
    gone.path.rename(tmp_path / "elsewhere")
    with pytest.raises(NearkinError, match=gone.hash):
        page(tmp_path, fitted.run.hash)
