"""Tables of the docs are what their recorded runs say, verdicts included."""

import importlib.util
import json
from pathlib import Path

import pytest
from stores import losses_study

from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.verdicts import all_pairs, verdict_words

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def results():
    spec = importlib.util.spec_from_file_location("results", ROOT / "examples" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_say_what_their_runs_say(results):
    tables = 0
    for name in results.PAGES:
        text = (ROOT / "docs" / name).read_text()
        tables += len(results.TABLE.findall(text))
        assert results.rendered(text) == text, f"docs/{name}: make results"
    assert tables == len(list((ROOT / "docs" / "results").glob("*.json")))


def test_a_number_that_is_changed_by_hand_does_not_stay(results):
    text = (ROOT / "docs" / "results.md").read_text()
    begin, end = results.TABLE.search(text).span()
    changed = text[:begin] + text[begin:end].replace("undecided", "distinguishable", 1) + text[end:]
    assert changed != text
    assert results.rendered(changed) == text


def test_what_is_recorded_gives_the_verdicts_of_compare(results, tmp_path):
    values = {
        "triplet": {0: 0.3, 1: 0.31, 2: 0.32},
        "margin": {0: 0.5, 1: 0.52, 2: 0.51},
        "untrained": {0: 0.1, 1: 0.1},
    }
    gathered = gather(["toy"], losses_study(tmp_path, values))
    (direct,) = compare(gathered)
    recorded = json.loads(json.dumps(results.record(gathered, "map_at_r")))
    loaded = results.load(recorded)
    assert [(m.name, m.values) for m in loaded.methods] == [(m.name, m.values) for m in direct.methods]
    words = [[verdict_words(pair, "map_at_r") for pair in all_pairs(each).pairs] for each in (direct, loaded)]
    assert words[0] == words[1]
    assert loaded.reference.name == direct.reference.name
    assert "| margin | ranking |" in results.render(recorded)
