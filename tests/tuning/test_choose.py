"""`nearkin choose`: only the winner is tested, the verdict is that of the numbers, and what is interrupted goes on."""

import json
import shutil

import numpy as np
import pytest
from stores import Done, Here
from tiny import TINY
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.cli.flags import in_flags
from nearkin.errors import NearkinError
from nearkin.evaluation.retrieval import evaluate
from nearkin.registry import LOSSES
from nearkin.runs.store import Store
from nearkin.statistics.unit import Key
from nearkin.studies.scheduler import Failure
from nearkin.tuning import choose, verdict
from nearkin.tuning._schedule import Plan
from nearkin.tuning.choose import Choice

DATA = ["dataset=glyphs", "data.classes=24", "data.per_class=10"]
FEW = {
    "contrastive": {"loss": "contrastive"},
    "arcface": {"loss": "arcface"},
    "triplet": {"loss": "triplet"},
    "proxy_nca": {"loss": "proxy_nca"},
}


@pytest.fixture(scope="module")
def small():
    """Four methods, and a plan that does not depend on the machine: 2 steps per unit, 2 finalists, 2 seeds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "PORTFOLIO", FEW)
        patch.setattr(choose, "plan", lambda *_, **__: Plan(2, 4, 2, 2, True))
        yield {key: value for key, value in TINY.items() if key != "epochs"}


@pytest.fixture(scope="module")
def whole(small, tmp_path_factory):
    """A choice that nothing interrupted, which tests only look at."""
    return Choice(small, 60, Store(tmp_path_factory.mktemp("whole")), 1).run(Here())


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of its store, which a test may change."""
    return Store(shutil.copytree(whole.store.root, tmp_path / "copy"))


def test_only_the_winner_is_tested(whole):
    choice, store = whole, whole.store
    runs = {run.hash: run for run in store.runs()}
    assert [name for name, run in runs.items() if run.tested] == [choice.winning_run.hash]
    assert len((store.root / "openings.jsonl").read_text().splitlines()) == 1
    trials = [run for run in runs.values() if run.purpose == "trial"]
    assert len(trials) == 4
    assert {run.stored["train"]["seed"] for run in trials} == {1000}
    epochs = sorted(max(line.get("epoch_end", 0) for line in run.log_lines()) for run in trials)
    assert epochs == [1, 1, 2, 2]  # the better half went on, nothing was begun again
    for run in trials:
        steps = [line["step"] for line in run.log_lines() if "step" in line]
        assert steps == list(range(1, len(steps) + 1))

    first = {c.name: c.screened[0] for c in choice.candidates.values()}
    second = {c.name: c.screened[1] for c in choice.candidates.values() if len(c.screened) == 2}
    assert set(second) == set(sorted(first, key=lambda name: -first[name])[:2])
    finals = {c.name: c for c in choice.candidates.values() if c.runs}
    assert set(finals) == set(second)
    means = {}
    for name, candidate in finals.items():
        assert sorted(candidate.runs) == [0, 1]
        values = [
            json.loads((run.path / "final.json").read_text())["validation"]["map_at_r"]
            for run in candidate.runs.values()
        ]
        means[name] = sum(values) / 2
    plain = json.loads((choice.untrained.path / "final.json").read_text())["validation"]["map_at_r"]
    best = max(means, key=lambda name: means[name])
    assert choice.winning_name == (best if means[best] > plain else "the untrained network")

    said = " ".join(verdict.sentences(choice))
    assert choice.winning_name in said
    assert f"Recall@1 {100 * choice.winning_run.result['test']['recall@1']:.1f} %" in said
    names = [row[0] for row in verdict.table(choice).rows]
    assert sorted(names) == sorted([*FEW, "the untrained network"])


def test_the_same_again_trains_nothing(small, whole, copy):
    first, executor = whole, Here()
    second = Choice(small, 60, copy, 1).run(executor)
    assert executor.tasks == []
    assert second.winning_run.hash == first.winning_run.hash
    for candidate in second.candidates.values():  # a seed that somebody trained since changes nothing
        assert sorted(candidate.runs) in ([], [0, 1])
        assert candidate.screened == first.candidates[candidate.name].screened
    assert second.used > first.used - 60
    assert len((copy.root / "openings.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("stop_at", [3, 8])
def test_what_is_interrupted_goes_on(small, whole, tmp_path, stop_at):
    store = Store(tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt):
        Choice(small, 60, store, 1).run(Here(stop_at=stop_at))
    choice = Choice(small, 60, store, 1).run(Here())
    assert choice.winning_run.hash == whole.winning_run.hash
    assert choice.winning_run.result["test"] == whole.winning_run.result["test"]
    assert {run.hash for run in store.runs()} == {run.hash for run in whole.store.runs()}


def test_if_the_untrained_network_wins_it_says_so(small, copy, monkeypatch):
    monkeypatch.setattr(Choice, "plain", 2.0)
    choice = Choice(small, 60, copy, 1).run(Here())
    assert choice.winner is None
    assert choice.winning_run.stored["train"]["epochs"] == 0
    assert "the untrained network wins: no loss was better" in verdict.sentences(choice)[0]


def test_no_time_at_all_still_answers(small, tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "plan", lambda *_, **__: Plan(0, 0, 0, 0, False))
    choice = Choice(small, 0.001, Store(tmp_path), 1).run(Here())
    said = " ".join(verdict.sentences(choice))
    assert "no loss could be trained within this time" in said
    assert "rests on nothing but the untrained network" in said
    assert choice.winning_run.tested


def test_when_the_time_is_up_nothing_more_begins(small, tmp_path, monkeypatch):
    executor = Here()
    monkeypatch.setattr(Choice, "late", property(lambda self: len(executor.tasks) >= 5))
    choice = Choice(small, 60, Store(tmp_path), 1).run(executor)
    assert len(executor.tasks) == 5  # four screened, one of them further
    assert choice.finalists == []
    assert choice.winning_name == "the untrained network"


def test_validation_class_by_class(whole):
    """Of every seed, by a loop; their mean over queries is the result that the winner was picked by."""
    candidate = whole.finalists[0]
    scores = candidate.scores("map_at_r")
    row = verdict.validated(candidate.name, scores, candidate.runs, "map_at_r")
    assert sorted(scores) == [0, 1]
    for seed, run in candidate.runs.items():
        with np.load(run.path / "validation.npz") as stored:
            z, labels = stored["embeddings"].astype(float), stored["labels"]
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        values = {}
        for q in range(len(z)):
            order = [i for i in np.argsort(-(z @ z[q]), kind="stable") if i != q]
            r = sum(labels == labels[q]) - 1
            hits = [labels[i] == labels[q] for i in order[:r]]
            values.setdefault(labels[q], []).append(sum(sum(hits[: i + 1]) / (i + 1) for i in range(r) if hits[i]) / r)
        by_class = row.by_class(Key(seed))
        assert by_class.classes == tuple(str(label) for label in sorted(values))
        assert by_class.means == pytest.approx([np.mean(values[label]) for label in sorted(values)], abs=1e-5)
        assert by_class.queries.tolist() == [len(values[label]) for label in sorted(values)]
        assert by_class.means @ by_class.queries / len(z) == pytest.approx(scores[seed], abs=1e-6)
    assert row.queries == len(z)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dataset=glyphs", "--minutes", "0"], "--minutes 0: above 0"),
        (["dataset=glyphs", "loss=margin"], "loss.name=margin: choose decides this itself"),
        (["dataset=glyphs", "train.eval_every=2"], "train.eval_every=2: choose decides this itself"),
        ([*DATA, "protocol=standard"], "holds out no validation classes"),
        (["dataset=folder", "root=/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_bad_input_is_one_sentence(words, said, tmp_path):
    done = CliRunner().invoke(app, ["choose", *words, "--runs", str(tmp_path / "runs")])
    assert isinstance(done.exception, NearkinError), (done.output, done.exception)
    assert said in in_flags(str(done.exception))


@pytest.mark.parametrize("select", ["recall@2", "hubness@5"])
def test_whatever_metric_selects(small, tmp_path, select):
    """The untrained network's run does not depend on it: it may be stored with another metric."""
    Choice(small, 60, Store(tmp_path), 1)._begin()
    choice = Choice({**small, "train.select": select}, 60, Store(tmp_path), 1).run(Here())
    assert choice.untrained.read_json("final.json")["validation"].keys() == {"recall@1", "map_at_r"}
    with np.load(choice.untrained.path / "validation.npz") as stored:
        plain = evaluate(stored["embeddings"], stored["labels"], metrics=[select]).metrics[select]
    assert choice.plain == plain
    means = {c.name: choice.mean(c) for c in choice.finalists}
    best = (max if select == "recall@2" else min)(means, key=lambda name: means[name])
    better = means[best] > plain if select == "recall@2" else means[best] < plain
    assert choice.winning_name == (best if better else "the untrained network")


def test_an_edited_method_is_another_choice(small, tmp_path, monkeypatch):
    first = Choice(small, 60, Store(tmp_path), 1)
    assert Choice(small, 60, Store(tmp_path), 1).name == first.name
    monkeypatch.setattr(LOSSES["arcface"], "version", 99)
    assert Choice(small, 60, Store(tmp_path), 1).name != first.name


def test_a_full_disk_drops_no_method(small, whole, tmp_path, monkeypatch):
    start = Here.start

    def full(self, task, worker):
        if len(self.tasks) == 2:
            self.tasks.append(task)
            return Done(Failure("the disk is full: cannot write log.jsonl", passing=True))
        return start(self, task, worker)

    with monkeypatch.context() as patch:
        patch.setattr(Here, "start", full)
        with pytest.raises(NearkinError, match=r"disk is full.*same command goes on"):
            Choice(small, 60, Store(tmp_path / "full"), 1).run(Here())
    choice = Choice(small, 60, Store(tmp_path / "full"), 1).run(Here())
    assert {c.name: c.screened for c in choice.candidates.values()} == {
        c.name: c.screened for c in whole.candidates.values()
    }
    assert choice.winning_run.hash == whole.winning_run.hash


def test_few_classes_get_more_validation(tmp_path):
    choice = Choice({"dataset": "glyphs", "data.classes": 24, "data.per_class": 10}, 1, Store(tmp_path), 1)
    assert choice.spec.protocol.params["share"] == pytest.approx(4 / 12, abs=1e-3)
    assert "validation: 4 of 12 training classes" in choice.said[0]
