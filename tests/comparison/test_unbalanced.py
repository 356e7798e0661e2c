"""Rows with unequal seeds, settings and folds: comparisons that named the wrong winner, each as it was found."""

import numpy as np
import pytest
from stores import add_run, add_study, losses_study

from nearkin.comparison import tables, words
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.tournament import standing, words_of
from nearkin.comparison.verdicts import all_pairs, first_family, kinds, ranks, tied_for_first, verdict_words
from nearkin.errors import NearkinError
from nearkin.statistics.unit import Nothing

METRIC = "map_at_r"


def study(root, cells, axes=("loss",), **more):
    """Cells (loss, seed, value) with, where they are given, fold, dim and validation."""
    stored = []
    for i, (loss, seed, value, *rest) in enumerate(cells):
        extra = rest[0] if rest else {}
        fold, dim = extra.get("fold"), extra.get("dim", 64)
        words = {"loss": loss, "dim": dim} | ({} if fold is None else {"protocol": "kfold", "protocol.fold": fold})
        validation = {METRIC: extra["validation"]} if "validation" in extra else None
        values = {"recall@1": value, METRIC: value} | extra.get("metrics", {})
        name = f"run{i:09d}"
        add_run(
            root,
            name,
            words,
            values,
            seed=seed,
            validation=validation,
            queries=extra.get("queries"),
            per_query=extra.get("per_query"),
        )
        labels = [loss] if axes == ("loss",) else [loss, str(dim)]
        stored.append({"labels": labels, "seed": seed, "run": name, "fold": fold})
    add_study(root, "made", list(axes), stored, **more)
    return gather(["made"], root)


def said(comparison, family=all_pairs):
    return [verdict_words(pair, comparison.metric) for pair in family(comparison).pairs]


def test_the_row_that_is_ahead_is_the_one_whose_difference_is_printed(tmp_path):
    """By its own seeds triplet leads; on the three that both have margin does."""
    values = {"triplet": {0: 0.50, 1: 0.501, 2: 0.502, 3: 0.9, 4: 0.9}, "margin": {0: 0.60, 1: 0.602, 2: 0.601}}
    (found,) = compare(gather(["toy"], losses_study(tmp_path, values)))
    assert [m.name for m in found.methods] == ["triplet", "margin"]
    assert said(found) == ["distinguishable: margin is ahead by 10.00 points"]
    (pair,) = all_pairs(found).pairs
    assert pair.difference.mean == pytest.approx(-0.1)
    assert ranks(found) == {"triplet": (2, 2), "margin": (1, 1)}
    assert tied_for_first(found) == ["margin"]
    assert words.first_words(found) == ["first: margin, distinguishable from all other trained rows"]


def test_the_same_with_settings_that_one_row_lacks(tmp_path):
    cells = [("triplet", s, 0.50 + s / 1000, {"dim": 64}) for s in range(3)]
    cells += [("triplet", s, 0.95 + s / 900, {"dim": 512}) for s in range(3)]
    cells += [("margin", s, 0.60 + s / 1100, {"dim": 64}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells, ("loss", "dim")), by=["loss"])
    assert said(found) == ["distinguishable: margin is ahead by 9.99 points"]
    assert any("margin lacks 512: its mean is over other settings than the rest" in note for note in found.notes)


def test_folds_are_matched_between_rows(tmp_path):
    """margin has fold 3 alone, an easy one; fold by fold the two are equal."""
    level = [0.3, 0.35, 0.4, 0.9]
    cells = [("triplet", s, level[f] + s / 100, {"fold": f}) for s in range(3) for f in range(4)]
    cells += [("margin", s, level[3] + s / 100, {"fold": 3}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells))
    (pair,) = all_pairs(found).pairs
    assert pair.difference.mean == 0
    assert said(found) == ["equivalent within ±1.00 points"]
    assert any(
        "margin lacks folds 0, 1, 2: its mean is over other folds" in note.replace(" and ", ", ")
        for note in found.notes
    )


def test_an_untrained_network_takes_part_in_every_fold(tmp_path):
    """It is run in the first fold only; a head that is fitted depends on the fold and is compared there."""
    cells = [("triplet", s, 0.3 + f / 10 + s / 100, {"fold": f}) for s in range(3) for f in range(2)]
    gathered = study(tmp_path, cells)
    told = []
    for i, head in enumerate(("none", "lda")):
        for s in range(3):
            words = {"epochs": 0, "model.head": head, "protocol": "kfold", "protocol.fold": 0}
            add_run(tmp_path, f"un{i}{s}".ljust(12, "0"), words, {METRIC: 0.1}, seed=s)
            told.append(f"un{i}{s}".ljust(12, "0"))
    single = gather([*(m.run.hash for m in gathered.members), *told], tmp_path)
    (found,) = compare(single)
    named = {method.name: method for method in found.methods}
    assert [place.fold for place in named["pooled (untrained)"].row.places] == [0, 1]
    assert [place.fold for place in named["lda (untrained)"].row.places] == [0]


def test_a_fitted_head_is_called_by_its_name(tmp_path):
    for i, head in enumerate(("none", "linear", "pca_whitening")):
        words = {"epochs": 0, "model.head": head}
        add_run(tmp_path, f"un{i}".ljust(12, "0"), words, {METRIC: 0.1 + i / 10})
    (found,) = compare(gather([str(tmp_path)]))
    assert [m.name for m in found.methods] == [
        "pca_whitening (untrained)",
        "random_head (untrained)",
        "pooled (untrained)",
    ]


def test_epochs_are_no_seeds(tmp_path):
    """Three runs that differ in their length, each with a seed of its own, are three methods."""
    for seed, (epochs, value) in enumerate([(4, 0.3), (40, 0.5), (400, 0.6)]):
        words = {"loss": "triplet", "epochs": epochs}
        add_run(tmp_path, f"e{epochs}".ljust(12, "x"), words, {METRIC: value}, seed=seed)
    (found,) = compare(gather([str(tmp_path)]))
    assert [m.name for m in found.methods] == ["triplet, epochs 400", "triplet, epochs 40", "triplet, epochs 4"]
    assert all(len(m.values) == 1 for m in found.methods)


def test_two_seeds_give_no_verdict(tmp_path):
    """Equal differences in two seeds have no spread; that is no certainty."""
    values = {"triplet": {0: 0.5, 1: 0.6}, "margin": {0: 0.6, 1: 0.7}}
    (found,) = compare(gather(["toy"], losses_study(tmp_path, values)))
    assert said(found) == ["no verdict: 2 common seeds, at least three seeds are needed"]
    assert ranks(found) == {"margin": (1, 2), "triplet": (1, 2)}
    assert words.first_words(found) == ["no row is better than another: at least three seeds are needed for a verdict"]


def test_a_tournament_of_methods_without_a_common_setting_is_refused(tmp_path):
    cells = [("triplet", s, 0.5, {"dim": 64}) for s in range(3)] + [("margin", s, 0.6, {"dim": 512}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells, ("loss", "dim")), by=["loss"])
    with pytest.raises(NearkinError, match=r"no experiment in common: no common settings"):
        standing(found)
    assert "tournament" not in tables.tables_of(found)
    assert said(found)[0].startswith("no common settings (")


def test_a_tournament_ranks_on_what_all_methods_have(tmp_path):
    """The easy setting that only two of three have counts for none; nor do seeds that one lacks."""
    level = {
        ("triplet", 64): 0.50,
        ("margin", 64): 0.51,
        ("contrastive", 64): 0.52,
        ("triplet", 512): 0.9,
        ("margin", 512): 0.95,
    }
    cells = [
        (loss, s, value + s / 1000, {"dim": dim})
        for (loss, dim), value in level.items()
        for s in range(4)
        if not (loss == "contrastive" and s == 3)
    ]
    (found,) = compare(study(tmp_path, cells, ("loss", "dim")), by=["loss"])
    ranked = standing(found)
    assert ranked.methods == ["contrastive", "margin", "triplet"]
    assert ranked.experiments == ["seed 0", "seed 1", "seed 2"]
    assert "left out, because not all methods have it: 512" in words_of(ranked)


def test_kinds_are_compared_on_what_all_have(tmp_path):
    cells = [("triplet", s, 0.5 + s / 1000, {"dim": 64}) for s in range(3)]
    cells += [("triplet", s, 0.9, {"dim": 512}) for s in range(3)]
    cells += [("proxy_anchor", s, 0.5 + s / 1000, {"dim": 64}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells, ("loss", "dim")), by=["loss"])
    assert kinds(found)[0].difference.mean == 0
    apart = [("triplet", s, 0.5, {"dim": 64}) for s in range(3)] + [("arcface", s, 0.5, {"dim": 512}) for s in range(3)]
    (found,) = compare(study(tmp_path / "apart", apart, ("loss", "dim")), by=["loss"])
    assert isinstance(kinds(found), Nothing)
    assert words.kinds_words(found)[0].startswith("ranking and classification losses cannot be compared: no common set")


def test_the_reference_is_chosen_by_validation_and_never_by_the_test(tmp_path):
    cells = [("triplet", s, 0.9 - s / 100, {"validation": 0.5}) for s in range(3)]
    cells += [("margin", s, 0.5 + s / 100, {"validation": 0.6}) for s in range(3)]
    cells += [("contrastive", s, 0.6 + s / 90, {"validation": 0.55}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells))
    assert found.reference.name == "margin"
    family = first_family(found)
    assert {pair.second.name for pair in family.pairs} == {"margin"}
    assert [pair.family for pair in family.pairs] == [2, 2]
    assert family.words == "every trained row against margin, which validation ranks first"
    (low,) = compare(study(tmp_path / "low", cells, select="hubness@1"))
    assert low.reference is None  # the metric that selects is not stored
    assert first_family(low).words == "all pairs of trained rows"


def test_where_low_is_better_everything_turns(tmp_path):
    """Order, winner, probability and ranks by a metric of which low is the good end."""
    cells = [("triplet", s, 0.5, {"metrics": {"hubness@10": 2.0 + s / 100}}) for s in range(3)]
    cells += [("margin", s, 0.5, {"metrics": {"hubness@10": 1.0 + s / 90}}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells), metric="hubness@10")
    assert [m.name for m in found.methods] == ["margin", "triplet"]
    (pair,) = all_pairs(found).pairs
    assert pair.difference.mean < 0
    assert (pair.winner.name, pair.improvement) == ("margin", 1.0)
    assert said(found) == ["distinguishable: margin is ahead by 0.999"]
    assert ranks(found) == {"margin": (1, 1), "triplet": (2, 2)}
    assert standing(found).methods == ["margin", "triplet"]


def test_where_neither_end_is_good_nobody_is_ahead(tmp_path):
    cells = [
        (loss, s, 0.5, {"metrics": {"pi_ratio": level * (1 + s / 100)}})
        for loss, level in (("triplet", 1.0), ("margin", 0.5))
        for s in range(3)
    ]
    (found,) = compare(study(tmp_path, cells), metric="pi_ratio")
    (pair,) = all_pairs(found).pairs
    assert pair.winner is None
    assert ranks(found) == {}
    assert said(found) == ["distinguishable: triplet is higher by 0.505"]
    assert words.first_words(found) == []


def test_all_settings_count_in_a_difference(tmp_path):
    """Equal in the first setting, apart in the second."""
    cells = [(loss, s, 0.5 + s / 100, {"dim": 64}) for loss in ("triplet", "margin") for s in range(3)]
    cells += [("triplet", s, 0.6 + s / 100, {"dim": 512}) for s in range(3)]
    cells += [("margin", s, 0.7 + s / 100, {"dim": 512}) for s in range(3)]
    (found,) = compare(study(tmp_path, cells, ("loss", "dim")), by=["loss"])
    (pair,) = all_pairs(found).pairs
    assert abs(pair.difference.mean) == pytest.approx(0.05)


def test_values_by_class_widen_the_interval_and_both_parts_are_told(tmp_path):
    rng = np.random.default_rng(0)
    cells = []
    for loss, gain in (("triplet", 0.0), ("margin", 0.05)):
        for s in range(3):
            classes = {c: np.clip(0.5 + gain + 0.2 * rng.normal(size=8), 0, 1) for c in "abcdefgh"}
            value = float(np.mean([v for values in classes.values() for v in values]))
            more = {"per_query": {METRIC: classes, "recall@1": classes}, "queries": 64}
            cells.append((loss, s, value, more))
    (found,) = compare(study(tmp_path, cells))
    (pair,) = all_pairs(found).pairs
    assert pair.difference.class_count == 8
    assert pair.difference.classes > 0
    pairs = tables.tables_of(found)["pairs"]
    assert [column.title for column in pairs.shown][-4:-2] == ["± seeds", "± classes"]
    assert "–" not in pairs.texts()[0][-4:-2]
    assert any("other seeds and other test classes" in note for note in pairs.notes)


def test_an_interval_does_not_leave_the_range_of_its_metric(tmp_path):
    values = {"triplet": {0: 0.99, 1: 0.91, 2: 0.98}, "margin": {0: 0.5, 1: 0.51, 2: 0.52}}
    (found,) = compare(gather(["toy"], losses_study(tmp_path, values)))
    assert (found.methods[0].interval.high, found.methods[0].interval.cut) == (1.0, True)
    board = tables.leaderboard(found)
    assert board.texts()[0][-1].endswith("to 100.00*")
    assert "* cut at the end of the metric's range" in board.notes


def test_a_study_without_recall_at_1_is_compared(tmp_path):
    curve = [{METRIC: 0.1}, {METRIC: 0.5}]
    add_run(tmp_path, "a" * 12, {"loss": "triplet"}, {METRIC: 0.5}, curve=curve)
    add_run(tmp_path, "b" * 12, {"loss": "margin"}, {METRIC: 0.4}, curve=curve)
    gathered = gather(["a", "b"], tmp_path)
    assert len(compare(gathered)) == 1
    with pytest.raises(NearkinError, match="none of the 2 runs has it"):
        compare(gathered, reading="test_best")
    assert compare(gathered, reading="test_best_each")[0].methods[0].values == {0: 0.5}


def test_runs_that_differ_in_nothing_that_is_stored_are_told_apart_by_their_hash(tmp_path):
    """Two runs of one seed and the same settings, as of two versions of a loss: neither hides the other."""
    for name, value in (("a" * 12, 0.4), ("b" * 12, 0.5)):
        add_run(tmp_path, name, {"loss": "triplet"}, {METRIC: value})
    (found,) = compare(gather([str(tmp_path)]))
    assert [m.name for m in found.methods] == ["triplet, run bbbbbb", "triplet, run aaaaaa"]


def test_rows_with_and_without_folds_stand_in_one_table_and_are_not_compared(tmp_path):
    cells = [("triplet", seed, 0.5 + seed / 100) for seed in range(3)]
    cells += [("margin", seed, 0.6 + seed / 100, {"fold": fold}) for seed in range(3) for fold in range(2)]
    (found,) = compare(study(tmp_path, cells))
    assert [(m.name, len(m.values)) for m in found.methods] == [("margin", 3), ("triplet", 3)]
    assert "triplet has no folds: not compared with rows that have" in found.notes
    assert not any("lacks" in note for note in found.notes)
    assert said(found) == ["no common folds (0; 1 against none): nothing to compare"]
