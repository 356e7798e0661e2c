"""`nearkin.train` in Python: one string of words, progress, and a run that prints what it is."""

import re

import pytest
import yaml

import nearkin
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.runs.events import silent
from nearkin.runs.store import Run, Store


def text_of(words):
    return " ".join(f"{key}={value}" for key, value in words.items())


def test_one_string_of_words(tiny, tmp_path):
    run = nearkin.train(f"{text_of(tiny)} loss=triplet", runs=tmp_path, epochs=0)
    assert run.hash == nearkin.train({**tiny, "loss": "triplet"}, runs=tmp_path, epochs=0).hash
    assert make_spec("loss=margin loss.beta=1.2") == make_spec({"loss": "margin", "loss.beta": 1.2})
    assert make_spec("root='my images'").data.root.name == "my images"
    assert make_spec("") == make_spec()


def test_a_file_and_words(tmp_path):
    file = tmp_path / "a run.yaml"
    file.write_text(yaml.safe_dump({"loss": "triplet", "dim": 8}))
    assert make_spec(f"'{file}' dim=16") == make_spec({"loss": "triplet", "dim": 16})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("los=triplet", "unknown key 'los'"),
        ("dim = 8", "write dim=8, without spaces"),
        ("dim='8", "has an opening quotation mark and no closing one"),
        ("dim=8 dim=9", "'dim' is given twice"),
    ],
)
def test_words_that_are_wrong(text, words):
    with pytest.raises(NearkinError) as raised:
        nearkin.train(text)
    assert words in str(raised.value)


def test_it_shows_its_progress(tiny, tmp_path, capfd):
    nearkin.train(tiny, runs=tmp_path)
    said = capfd.readouterr().err
    assert "plan: 2 epochs of 6 steps" in said
    assert re.search(r"epoch   2/2  validation recall@1 \d", said)
    nearkin.train(tiny, runs=tmp_path)  # stored: nothing is done, nothing is said
    assert capfd.readouterr().err == ""


def test_a_watcher_takes_its_place(tiny, tmp_path, capfd):
    entries = []
    nearkin.train(tiny, runs=tmp_path, watch=entries.append)
    assert "plan" in entries[0]
    nearkin.train(tiny, runs=tmp_path, watch=silent, seed=1)
    assert "epoch" not in capfd.readouterr().err


def lines_of(run):
    lines = repr(run).splitlines()
    assert 1 <= len(lines) <= 7
    assert all(re.match(r"\w+ +\S", line) for line in lines)
    assert len({re.match(r"\w+ +", line).end() for line in lines}) == 1  # aligned
    return {line.split()[0]: line for line in lines}


def test_a_run_prints_what_it_is(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path, loss="triplet")
    lines = lines_of(run)
    assert run.hash in lines["run"]
    assert "tested" in lines["run"]
    assert "glyphs" in lines["data"]
    assert "100 images of 10 classes" in lines["data"]
    assert "loss=triplet" in lines["settings"]
    assert f"epoch {run.result['epoch']} of 2" in lines["chosen"]
    assert f"map_at_r {100 * run.metrics()['map_at_r']:.2f} %" in lines["test"]
    assert f"recall@1 {100 * run.metrics()['recall@1']:.2f} %" in lines["test"]
    assert "not measured" in lines["pooled"]
    call = re.search(r"nearkin\.train\(.*\)", lines["pooled"])[0]
    pooled = eval(call.removesuffix(")") + ", runs=folder)", {"nearkin": nearkin, "run": run, "folder": tmp_path})
    assert f"map_at_r {100 * pooled.metrics()['map_at_r']:.2f} %" in lines_of(run)["pooled"]
    assert "pooled" not in lines_of(pooled)  # it is the one
    nearkin.train(tiny, runs=tmp_path, seed=3, epochs=0, model={"head": "none"})
    assert f"map_at_r {100 * pooled.metrics()['map_at_r']:.2f} %" in lines_of(run)["pooled"]  # of its own seed
    assert "not measured" in lines_of(nearkin.train(tiny, runs=tmp_path, seed=2, test=True))["pooled"]


def test_a_run_in_every_state(tiny, tmp_path):
    untested = nearkin.train(tiny, runs=tmp_path, epochs=1, test=False)
    assert "not tested" in lines_of(untested)["test"]
    paused = nearkin.train(tiny, runs=tmp_path, epochs=2, seed=1, until=1)
    assert "not finished" in lines_of(paused)["chosen"]
    trial = nearkin.train(tiny, runs=tmp_path, epochs=1, purpose="trial")
    assert "trials never are" in lines_of(trial)["test"]
    assert lines_of(Run(tmp_path / "0123456789ab"))["run"].endswith("nothing is stored")
    (untested.path / "final.json").write_text("{")
    again = Store(tmp_path).run(untested.hash)
    assert "damaged" in repr(again)
    assert str(again) == repr(again)
