"""A store that forgets nothing: what is written, what old, new, damaged and foreign runs do to it."""

import json
import runpy
import shutil
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs import environment, listing
from nearkin.runs.log import LogReader, read_log
from nearkin.runs.store import SCHEMA, Run, Store

TINY = {
    "dataset": "glyphs",
    "data.classes": 24,
    "data.per_class": 10,
    "backbone": "convnet",
    "dim": 16,
    "train.batch": 16,
    "sampler.per_class": 4,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three small runs."""
    folder = tmp_path_factory.mktemp("runs")
    for more in ({"loss": "triplet"}, {"loss": "margin", "miner": "distance_weighted"}, {"purpose": "trial"}):
        nearkin.train(TINY | more, runs=folder, epochs=1)
    return folder


@pytest.fixture
def copied(runs, tmp_path):
    shutil.copytree(runs, tmp_path / "runs")
    return tmp_path / "runs"


def listed(folder, *options):
    done = CliRunner().invoke(app, ["runs", "list", "--json", "--runs", str(folder), *options])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


class TestListing:
    def test_rows(self, runs):
        rows = {row["loss"]: row for row in listed(runs)}
        assert {row["state"] for row in rows.values()} == {"tested", "trial"}
        row = rows["margin"]
        assert (row["data"], row["backbone"], row["dim"], row["seed"]) == ("glyphs", "convnet", 16, 0)
        assert row["map_at_r"] == row["result"]["test"]["map_at_r"]
        assert row["validation map_at_r"] == row["result"]["validation"]["map_at_r"]
        assert row["age"] >= 0

    def test_where_and_sort(self, runs):
        assert [row["loss"] for row in listed(runs, "--where", "loss=margin")] == ["margin"]
        assert listed(runs, "--where", "loss=margin", "--where", "seed=1") == []
        figures = [row["map_at_r"] for row in listed(runs, "--sort", "map_at_r")]
        assert figures[:2] == sorted(figures[:2], reverse=True)
        assert figures[2] is None  # the trial
        for options, said in ((["--sort", "map_at"], "mean map_at_r"), (["--where", "los=x"], "did you mean loss")):
            done = CliRunner().invoke(app, ["runs", "list", "--runs", str(runs), *options])
            assert said in str(done.exception)

    def test_a_run_in_words(self, runs):
        run = Store(runs).find(next(row["run"] for row in listed(runs) if row["loss"] == "margin"))
        assert "loss=margin" in listing.describe(run.stored)
        assert "miner=distance_weighted" in listing.describe(run.stored)
        assert "beta" not in listing.describe(run.stored)  # a default

    def test_a_run_of_before_the_first_release_is_refused_in_one_sentence(self, copied):
        path = next(p for p in sorted(copied.iterdir()) if p.is_dir())
        head = yaml.safe_load((path / "spec.yaml").read_text())
        (path / "files.json").unlink()
        (path / "spec.yaml").write_text(yaml.safe_dump({key: head[key] for key in head if key != "schema"}))
        said = f"was stored before nearkin was released (schema 1; this one reads {SCHEMA})"
        assert {row["run"]: row["state"] for row in listed(copied)}[path.name] == said
        for command in (["runs", "show"], ["test"], ["report"], ["compare"]):
            done = CliRunner().invoke(app, [*command, path.name, "--runs", str(copied)])
            assert isinstance(done.exception, NearkinError), (command, done.output)
            assert said in str(done.exception)

    def test_damaged_and_foreign_runs_are_shown_as_such(self, copied):
        first, second, third = sorted(p for p in copied.iterdir() if p.is_dir())
        (first / "spec.yaml").write_text("spec: [1, 2")
        for path in (second, third):
            (path / "files.json").unlink()  # else their checksums would say it
        (second / "spec.yaml").write_text(yaml.safe_dump({"schema": SCHEMA + 1, "spec": {}}))
        (third / "final.json").write_text("{")
        (copied / "foreign").mkdir()
        (copied / "foreign" / "spec.yaml").write_text("kind: kubernetes")
        states = {row["run"]: row["state"] for row in listed(copied)}
        assert "damaged" in states[first.name]
        assert states[second.name].startswith("was stored by a newer nearkin")
        assert "final.json cannot be read" in states[third.name]
        assert "holds no spec" in states["foreign"]
        shown = CliRunner().invoke(app, ["runs", "list", "--runs", str(copied)])
        assert shown.exit_code == 0
        newer = f"schema {SCHEMA + 1}; this one reads {SCHEMA}"
        for name, said in ((first.name, "damaged"), (second.name, newer)):
            done = CliRunner().invoke(app, ["runs", "show", name, "--runs", str(copied)])
            assert isinstance(done.exception, NearkinError)
            assert said in str(done.exception)

    def test_looking_never_imports_what_a_spec_names(self, copied, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "trap_losses.py").write_text("raise SystemExit('imported')")
        for run in Store(copied).runs():
            head = run.head()
            head["spec"]["loss"] = {"name": "trap_losses.Mine", "margin": 3}
            head["spec"]["model"]["backbone"] = "trap_losses.Net"
            (run.path / "spec.yaml").write_text(yaml.safe_dump(head))
            (run.path / "files.json").unlink()
        rows = listed(copied)
        assert {row["loss"] for row in rows} == {"trap_losses.Mine"}
        for row in rows:
            done = CliRunner().invoke(app, ["runs", "show", row["run"], "--runs", str(copied)])
            assert done.exit_code == 0, done.exception
            assert "loss.margin=3" in done.stdout
        assert "trap_losses" not in sys.modules


class TestIdentity:
    def test_a_stored_run_that_means_something_else_is_not_taken(self, copied, tiny):
        run = nearkin.train(tiny | {"loss": "triplet"}, runs=copied, epochs=1)
        head = run.head()
        head["spec"]["loss"]["margin"] = 0.7  # as if the default had been another
        (run.path / "spec.yaml").write_text(yaml.safe_dump(head))
        (run.path / "files.json").unlink()
        with pytest.raises(NearkinError, match=r"loss\.margin=0\.7 is stored, loss\.margin=0\.2 is asked for"):
            nearkin.train(tiny | {"loss": "triplet"}, runs=copied, epochs=1)

    def test_the_whole_spec_is_stored(self, runs):
        head = next(run.head() for run in Store(runs).runs() if run.stored["loss"]["name"] == "triplet")
        assert head["schema"] == SCHEMA
        assert head["spec"]["loss"] == {"name": "triplet", "margin": 0.2, "squared": True, "reduction": "mean"}
        assert head["spec"]["train"]["clip"] is None

    def test_an_edited_loss_is_trained_again(self, tiny, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        text = """
from nearkin.losses import PairLoss
class Pull(PairLoss):
    def compute(self, pairs, tuples=None):
        return FACTOR * pairs.d2.mean()
"""
        found = []
        for factor in ("1", "-1"):
            (tmp_path / "edited_losses.py").write_text(text.replace("FACTOR", factor))
            sys.modules.pop("edited_losses", None)
            found.append(nearkin.train(tiny, runs=tmp_path / "runs", epochs=1, loss="edited_losses.Pull"))
        sys.modules.pop("edited_losses", None)
        assert found[0].hash != found[1].hash
        assert found[0].metrics() != found[1].metrics()


class TestSessions:
    def test_seconds_and_environments_add_up(self, tiny, tmp_path, monkeypatch):
        monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
        clock = iter(range(0, 100_000, 10))  # every look at the clock is ten seconds later
        monkeypatch.setattr("nearkin.engine.loop.time.monotonic", lambda: next(clock))

        def watch(entry):
            if entry.get("step") == 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            nearkin.train(tiny, runs=tmp_path, watch=watch)
        begun = Run(next(p for p in tmp_path.iterdir() if p.is_dir()))
        first = begun.load("checkpoint.pt")["progress"]["seconds"]
        assert first > 0
        run = nearkin.train(tiny, runs=tmp_path)
        assert run.result["seconds"] > first
        environment = run.read_json("environment.json")
        assert len(environment["sessions"]) == 2
        assert all({"threads", "cpu", "began", "versions"} <= session.keys() for session in environment["sessions"])

    def test_the_commit_is_nearkins_own_or_absent(self, tmp_path):
        """Installed inside another project's repository, that repository's commit is none of ours."""
        here = environment._commit.__wrapped__()
        assert here is None or len(here.rstrip("+")) == 40
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(tmp_path)]
        subprocess.run([*git, "init", "-q"], check=True)
        package = tmp_path / "libs" / "nearkin"
        (package / "runs").mkdir(parents=True)
        (package / "__init__.py").touch()
        copy = shutil.copy(environment.__file__, package / "runs")
        for tracked in (False, True):  # ignored as a venv is, or checked in
            if tracked:
                subprocess.run([*git, "add", "libs"], check=True)
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
            assert runpy.run_path(copy)["_commit"]() is None


class TestLog:
    def test_a_last_line_that_was_cut_short_is_left_out(self, tmp_path):
        log = tmp_path / "log.jsonl"
        whole = [{"step": 1}, {"epoch_end": 1, "validation": {"map_at_r": 0.5}}]
        for cut in ('{"epoch_end": 2, "validation": {"map_at_r": 0.5}', '{"step', ""):  # the first ends in a brace
            log.write_text("".join(json.dumps(line) + "\n" for line in whole) + cut)
            assert read_log(log) == whole
        assert read_log(tmp_path / "absent.jsonl") == []

    def test_a_reader_reads_what_is_new(self, tmp_path, monkeypatch):
        log = tmp_path / "log.jsonl"
        reader = LogReader(log)
        assert reader.more() == []
        log.write_text('{"step": 1}\n{"st')
        assert reader.more() == [{"step": 1}]
        with open(log, "a") as file:
            file.write('ep": 2}\n')
        assert reader.more() == [{"step": 2}]
        assert reader.more() == []
        log.write_text('{"step": 1}\n')  # cut back by a resumed run
        assert reader.more() == [{"step": 1}]

    def test_a_look_at_a_long_log_reads_only_its_end(self, tmp_path):
        log = tmp_path / "log.jsonl"
        log.write_text('{"step": 1}\n' * 100_000)
        reader = LogReader(log)
        assert len(reader.more()) == 100_000
        with open(log, "a") as file:
            file.write('{"step": 2}\n')
        with open(log, "r+") as file:  # what was read before is not looked at again
            file.write("x" * 11)
        assert reader.more() == [{"step": 2}]


def test_a_run_of_another_distance_than_tested_is_empty(runs):
    run = next(run for run in Store(runs).runs() if run.tested)
    assert run.metrics("euclid") == {}


def test_an_empty_name_finds_no_run(runs):
    with pytest.raises(NearkinError, match="no run ''"):
        Store(runs).find("")
