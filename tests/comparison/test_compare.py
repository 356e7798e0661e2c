"""Comparisons of stored runs: values by seed after folds, notes, verdicts, and what is refused."""

import json

import numpy as np
import pytest
from scipy import stats
from stores import add_run, add_study, losses_study

from nearkin.comparison import tables, words
from nearkin.comparison.compare import compare, measure_missing
from nearkin.comparison.gather import Member, gather
from nearkin.comparison.method import kind_of
from nearkin.comparison.result import compare as compare_names
from nearkin.comparison.tournament import standing
from nearkin.comparison.verdicts import all_pairs, first_family, kinds, verdict_words
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES
from nearkin.runs.run import Run


def seeds(*values):
    return dict(enumerate(values))


FAR = {
    "triplet": seeds(0.30, 0.312, 0.32),
    "contrastive": seeds(0.50, 0.51, 0.52),
    "proxy_anchor": seeds(0.505, 0.50, 0.53),
}


def test_values_intervals_and_order(tmp_path):
    (found,) = compare(gather(["toy"], losses_study(tmp_path, FAR)))
    assert [m.name for m in found.methods] == ["proxy_anchor", "contrastive", "triplet"]
    assert found.methods[1].values == FAR["contrastive"]
    low, high = stats.t.interval(0.95, 2, loc=0.51, scale=stats.sem([0.50, 0.51, 0.52]))
    assert (found.methods[1].interval.low, found.methods[1].interval.high) == pytest.approx((low, high))


def said(pair):
    return verdict_words(pair, "map_at_r")


def test_verdicts_follow_from_the_numbers(tmp_path):
    """Validation ranks all three alike, so that the first by name is the reference."""
    (found,) = compare(gather(["toy"], losses_study(tmp_path, FAR)))
    assert found.reference.name == "contrastive"
    first, second = first_family(found).pairs
    d = np.array([0.505, 0.50, 0.53]) - [0.50, 0.51, 0.52]
    assert first.difference.mean == pytest.approx(d.mean())
    assert not first.decided
    assert said(first).startswith("undecided: 3 seeds could have shown a difference of ")
    variances = [np.var(x, ddof=1) for x in (d, np.array([0.3, 0.312, 0.32]) - [0.50, 0.51, 0.52])]
    moderated = (0.5 * np.mean(variances) + 2 * variances[1]) / 2.5  # three rows: d₀ = 0.5
    raw = 2 * stats.t.sf(abs(second.difference.mean) / np.sqrt(moderated / 3), 2.5)
    assert second.decided
    assert second.p == pytest.approx(2 * raw)  # the smaller of two, by Holm
    assert said(second) == "distinguishable: contrastive is ahead by 19.93 points"
    assert second.improvement == 0.0
    assert len(all_pairs(found).pairs) == 3


def test_folds_are_averaged_before_seeds(tmp_path):
    cells = []
    for seed, fold, value in [(0, 0, 0.2), (0, 1, 0.6), (1, 0, 0.3), (1, 1, 0.7), (2, 0, 0.9)]:
        run = f"a{seed}{fold}".ljust(12, "0")
        add_run(tmp_path, run, {"protocol": "kfold", "protocol.fold": fold}, {"map_at_r": value}, seed=seed)
        cells.append({"labels": ["a"], "seed": seed, "fold": fold, "run": run})
    cells.append({"labels": ["a"], "seed": 2, "fold": 1, "run": "missing"})
    add_study(tmp_path, "folds", ["loss"], cells)
    (found,) = compare(gather(["folds"], tmp_path))
    assert found.methods[0].values == pytest.approx({0: 0.4, 1: 0.5})  # seed 2 lacks a fold: no value
    assert any("1 of 6 runs have no result" in note for note in found.notes)


def test_one_seed_is_said_and_judged_nowhere(tmp_path):
    (found,) = compare(gather(["toy"], losses_study(tmp_path, {k: {0: v[0]} for k, v in FAR.items()})))
    words = {said(pair) for pair in first_family(found).pairs}
    assert words == {"no verdict: one common seed, at least three seeds are needed"}
    board = tables.leaderboard(found)
    assert board.texts()[0][-1] == "–"
    assert any("no interval" in note for note in board.notes)


def test_without_common_seeds_nothing_is_subtracted(tmp_path):
    values = {"triplet": {0: 0.3, 1: 0.31}, "contrastive": {2: 0.5, 3: 0.51}}
    (found,) = compare(gather(["toy"], losses_study(tmp_path, values)))
    (pair,) = first_family(found).pairs
    assert pair.difference is None
    assert said(pair) == "no common seeds (0; 1 against 2; 3): nothing to compare"
    assert [note for note in found.notes if "seeds" in note] == [
        "unequal seeds: 2, 3 (contrastive); 0, 1 (triplet); differences are taken on common seeds"
    ]


def test_unequal_seeds_use_the_common_ones(tmp_path):
    values = {"triplet": seeds(0.3, 0.31, 0.32, 0.9), "contrastive": seeds(0.5, 0.52, 0.51)}
    (found,) = compare(gather(["toy"], losses_study(tmp_path, values)))
    (pair,) = first_family(found).pairs
    assert (pair.difference.n, pair.difference.mean) == (3, pytest.approx(-0.2))
    words = "unequal seeds: 0, 1, 2 (contrastive); 0, 1, 2, 3 (triplet); differences are taken on common seeds"
    assert [note for note in found.notes if "seeds" in note] == [words]


def test_unequal_budgets_are_said(tmp_path):
    add_run(tmp_path, "a" * 12, {"loss": "triplet"}, {"map_at_r": 0.4})
    add_run(tmp_path, "b" * 12, {"loss": "margin"}, {"map_at_r": 0.5}, steps=900)
    (found,) = compare(gather(["a" * 12, "b" * 12], tmp_path))
    assert any(note.startswith("unequal steps: ") for note in found.notes)


def test_data_sets_are_never_mixed(tmp_path):
    for i, (data, value) in enumerate([("x", 0.4), ("y", 0.9)]):
        for loss in ("triplet", "margin"):
            name = f"{loss}{data}".ljust(12, "0")
            add_run(tmp_path, name, {"loss": loss}, {"map_at_r": value + i / 10}, data_hash=data)
    names = [run.name for run in tmp_path.iterdir() if run.is_dir()]
    with pytest.raises(NearkinError, match=r"2 data sets.*by=data,loss compares within each"):
        compare(gather(names, tmp_path), by=["loss"])
    found = compare(gather(names, tmp_path), by=["data", "loss"])
    assert [len(each.methods) for each in found] == [2, 2]
    with pytest.raises(NearkinError, match="2 data sets"):
        compare(gather([str(tmp_path)]))


def test_settings_beside_the_rows_are_blocks(tmp_path):
    cells = []
    values = {
        ("triplet", 64): (0.3, 0.4),
        ("triplet", 128): (0.5, 0.6),
        ("margin", 64): (0.35, 0.45),
        ("margin", 128): (0.4, 0.5),
    }
    for (loss, dim), own in values.items():
        for seed, value in enumerate(own):
            run = f"{loss}{dim}{seed}".ljust(12, "0")
            add_run(tmp_path, run, {"loss": loss, "dim": dim}, {"map_at_r": value}, seed=seed)
            cells.append({"labels": [loss, str(dim)], "seed": seed, "run": run})
    add_run(tmp_path, "u" * 12, {"epochs": 0}, {"map_at_r": 0.1})
    cells.append({"labels": ["pooled (untrained)", "any"], "seed": 0, "run": "u" * 12, "baseline": "pooled"})
    add_study(tmp_path, "grid", ["loss", "dim"], cells)
    (found,) = compare(gather(["grid"], tmp_path), by=["loss"])
    named = {m.name: m for m in found.methods}
    assert named["triplet"].values == pytest.approx({0: 0.4, 1: 0.5})
    assert named["pooled (untrained)"].values == {0: 0.1}  # the same network, whatever the size
    assert any("means over 2 settings of dim: 64, 128" in note for note in found.notes)
    assert not any("unequal size" in note for note in found.notes)
    ranked = standing(found)
    assert (ranked.over, ranked.experiments) == ("settings", ["64", "128"])
    assert ranked.methods == ["triplet", "margin"]
    assert ranked.result.ranks.tolist() == [[2, 1], [1, 2]]
    (whole,) = compare(gather(["grid"], tmp_path))
    assert len(whole.methods) == 5


def test_runs_that_differ_in_a_setting_are_rows_named_by_it(tmp_path):
    add_run(tmp_path, "a" * 12, {"loss": "triplet", "loss.margin": 0.1}, {"map_at_r": 0.4})
    add_run(tmp_path, "b" * 12, {"loss": "triplet", "loss.margin": 0.2}, {"map_at_r": 0.5})
    (found,) = compare(gather(["a", "b"], tmp_path))
    assert [m.name for m in found.methods] == ["triplet, loss.margin 0.2", "triplet, loss.margin 0.1"]
    (found,) = compare(gather(["a", "b"], tmp_path), by=["loss.margin"])
    assert [m.name for m in found.methods] == ["0.2", "0.1"]


def test_a_reading_that_the_test_images_chose_is_branded(tmp_path):
    curve = [{"recall@1": 0.2, "map_at_r": 0.1}, {"recall@1": 0.6, "map_at_r": 0.5}, {"recall@1": 0.5, "map_at_r": 0.7}]
    add_run(tmp_path, "a" * 12, {"loss": "triplet"}, {"recall@1": 0.5, "map_at_r": 0.7}, curve=curve)
    add_run(tmp_path, "b" * 12, {"loss": "margin"}, {"recall@1": 0.5, "map_at_r": 0.4}, curve=curve)
    (found,) = compare(gather(["a", "b"], tmp_path), reading="test_best")
    assert [m.values for m in found.methods] == [{0: 0.5}, {0: 0.5}]
    assert any("picked on the test images: no result" in note for note in found.notes)


def test_ranking_against_classification(tmp_path):
    (found,) = compare(gather(["toy"], losses_study(tmp_path, FAR)))
    result, ranking, classification = kinds(found)
    assert (ranking, classification) == (["contrastive", "triplet"], ["proxy_anchor"])
    assert result.difference.mean == pytest.approx(np.mean([0.4, 0.411, 0.42]) - np.mean([0.505, 0.50, 0.53]))
    assert "ranking losses minus" in words.kinds_words(found)[0]


def test_every_loss_has_a_kind(tmp_path):
    """Those of Kobs et al. 2021 as they group them; margin has a boundary per class, but compares images."""

    def kind(name):
        path = add_run(tmp_path, name, {"loss": name}, {"map_at_r": 0.5})
        return kind_of(Member({}, 0, None, Run(path)))

    found = {name: kind(name) for name in LOSSES.names()}
    pairs = ("contrastive", "triplet", "nt_xent", "margin", "fastap", "snr_contrastive")
    assert {found[n] for n in pairs} == {"ranking"}
    classes = ("proxy_nca", "norm_softmax", "cosface", "arcface", "soft_triple", "proxy_anchor", "softmax", "hist")
    assert {found[n] for n in classes} == {"classification"}
    assert set(found.values()) == {"ranking", "classification"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda root: gather([], root), "nothing to compare"),
        (lambda root: gather(["tuy"], root), "no study and no run 'tuy'.*did you mean.*toy"),
        (lambda root: compare(gather(["toy"], root), metric="map_at_q"), "map_at_r"),
        (lambda root: compare(gather(["toy"], root), metric="recall"), "which k"),
        (lambda root: compare(gather(["toy"], root), metric="train.x"), "metric=train.x"),
        (lambda root: compare(gather(["toy"], root), by=["los"]), "by=los: neither an axis nor a setting"),
        (lambda root: compare(gather(["toy"], root), reading="best"), "reading=best"),
        (lambda root: gather([str(root / "absent.yaml")], root), "no study and no run"),
        (lambda root: standing(compare(gather(["triplet0"], root))[0]), "at least two trained methods"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, call, words):
    losses_study(tmp_path, FAR)
    with pytest.raises(NearkinError, match=words):
        call(tmp_path)


def test_a_metric_that_is_not_stored_is_computed_from_embeddings(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("nearkin.comparison.compare.test", lambda run, metrics: asked.append((run.hash, metrics)))
    gathered = gather(["toy"], losses_study(tmp_path, FAR))
    with pytest.raises(NearkinError, match="none of the 9 runs has it"):
        compare(gathered, metric="nmi")
    assert asked == []  # reading opens nothing
    measure_missing(gathered, "nmi")
    assert sorted(asked) == sorted((m.run.hash, ["nmi"]) for m in gathered.members)


def test_what_json_tells_is_what_the_tables_show(tmp_path):
    (found,) = compare(gather(["toy"], losses_study(tmp_path, FAR)))
    content = json.loads(json.dumps(compare_names("toy", runs=tmp_path).to_dict(), allow_nan=False))
    shown = tables.tables_of(found)
    assert content["tables"] == {name: table.records() for name, table in shown.items()}
    means = [f"{100 * row['map_at_r']:.2f}" for row in content["tables"]["leaderboard"]]
    assert means == [line[4] for line in shown["leaderboard"].texts()]
    verdicts = [row["verdict"] for row in content["tables"]["differences"]]
    assert verdicts == [line[1] for line in shown["differences"].texts()]
    assert list(content["tables"]["tournament"][0].values())[-3:] == [1, 2, 1]


def test_data_sets_of_the_same_name_have_tables_of_their_own(tmp_path):
    for data in ("one", "two"):
        for loss in ("triplet", "margin"):
            add_run(tmp_path, f"{data}{loss}".ljust(12, "0"), {"loss": loss}, {"map_at_r": 0.3}, data_hash=data)
    by_name = compare_names(str(tmp_path), runs=tmp_path, by=["data", "loss"]).by_name
    assert {name for name in by_name if name.startswith("leaderboard")} == {
        "leaderboard-glyphs-one",
        "leaderboard-glyphs-two",
    }
