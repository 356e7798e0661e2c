"""One study with a run missing: whoever prints a row's value, or the difference of two, prints the same number."""

import pytest
from stores import add_run, add_study

from nearkin.analysis._over_runs import interval_of, methods_of
from nearkin.comparison.claims import rows_of
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.verdicts import all_pairs
from nearkin.pages._leaderboard import table_of
from nearkin.pages._material import material
from nearkin.statistics.verdict import judge
from nearkin.tuning._tuned import gains_of

METRIC, MISSING = "recall@1", ("margin", "tuned", 3, 1)
LEVEL = {("triplet", "default"): 0.3, ("triplet", "tuned"): 0.33, ("margin", "default"): 0.4, ("margin", "tuned"): 0.41}


@pytest.fixture
def gathered(tmp_path):
    """Two losses, default and tuned, four seeds, two folds of which the second is the easier; one run is missing."""
    cells = []
    for i, ((loss, settings), level) in enumerate(LEVEL.items()):
        for seed in range(4):
            for fold in range(2):
                if (loss, settings, seed, fold) == MISSING:
                    continue
                value = level + 0.2 * fold + (7 * seed * (i + 1) % 5) / 100
                name = f"r{i}{seed}{fold}".ljust(12, "0")
                words = {"loss": loss, "protocol": "kfold", "protocol.fold": fold}
                add_run(tmp_path, name, words, {METRIC: value, "map_at_r": value}, seed=seed)
                cells.append({"labels": [loss, settings], "seed": seed, "fold": fold, "run": name})
    add_study(tmp_path, "made", ["loss", "settings"], cells)
    return gather(["made"], tmp_path)


def test_all_print_one_number(gathered):
    (comparison,) = compare(gathered, metric=METRIC)
    wanted = {method.name: method.interval.mean for method in comparison.methods}
    tuned = next(method for method in comparison.methods if method.name == "margin, tuned")
    assert list(tuned.values) == [0, 1, 2]  # seed 3 lacks a fold

    page = material(gathered, metric=METRIC)
    table = table_of(page.boards[0], [])
    shown = dict(zip(table.column("method"), table.column(METRIC), strict=True))
    analysed = {method.name: interval_of(method.metric(METRIC)).mean for method in methods_of(gathered)}
    claimed = {}
    for row in rows_of(gathered):
        values = row.metrics[METRIC].values
        claimed[row.name] = sum(values.values()) / len(values)
    assert shown == wanted
    assert analysed == wanted
    assert claimed == pytest.approx(wanted, abs=1e-15)


def test_and_one_difference(gathered):
    (comparison,) = compare(gathered, metric=METRIC)
    pairs = {frozenset((p.first.name, p.second.name)): p.difference.mean for p in all_pairs(comparison).pairs}
    wanted = abs(pairs[frozenset(("margin, tuned", "margin, default"))])
    gain = next(gain for gain in gains_of(gathered, [METRIC]) if gain.name == "margin")
    rows = {row.name: row.metrics[METRIC] for row in rows_of(gathered)}
    (claimed,) = judge([(rows["margin, tuned"], rows["margin, default"])])
    assert abs(gain.pair.difference.mean) == wanted
    assert abs(claimed.difference.mean) == wanted
    assert gain.pair.difference.n == claimed.difference.n == 3
