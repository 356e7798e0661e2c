"""What a newcomer stumbled on, command by command."""

import io
import json
import os
import signal
import sys
import time
import traceback

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import nearkin
from nearkin import progress
from nearkin.cache import cached
from nearkin.cli.app import app, main
from nearkin.config.parse import parse_words
from nearkin.errors import NearkinError
from nearkin.runs.training_bar import plan_lines, training_bar


def call(*words, **options):
    return CliRunner().invoke(app, [str(w) for w in words], **options)


def words_of(tiny):
    return [f"{k}={v}" for k, v in tiny.items()]


@pytest.fixture
def flowers(tmp_path):
    """Twelve classes of six images; one file is broken."""
    rng = np.random.default_rng(0)
    for c in range(12):
        folder = tmp_path / "flowers" / f"class{c:02d}"
        folder.mkdir(parents=True)
        for i in range(6):
            pixels = np.clip(rng.integers(0, 255, 3) * 0 + c * 20 + rng.integers(0, 60, (40, 40, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    (tmp_path / "flowers" / "class00" / "broken.jpg").write_text("no image")
    return tmp_path / "flowers"


def test_a_stored_result_is_told_as_such(tiny, tmp_path):
    where = ("--runs", tmp_path)
    first = call("train", *words_of(tiny), *where)
    assert "nothing was trained" not in first.stdout
    again = call("train", *words_of(tiny), *where)
    assert "stored on 20" in again.stdout
    assert "nothing was trained" in again.stdout
    untested = call("train", *words_of(tiny), "seed=3", "--no-test", *where)
    assert "not tested: nearkin test" in untested.stdout
    now = call("train", *words_of(tiny), "seed=3", *where)
    assert "only the test is new" in now.stdout


def test_the_untrained_network_stands_beside_the_trained_one(tiny, tmp_path):
    done = call("train", *words_of(tiny), "--runs", tmp_path)
    assert "without training" in done.stdout
    base = nearkin.train(tiny | {"epochs": 0, "model.head": "none"}, runs=tmp_path)
    shown = f"{100 * base.metrics()['map_at_r']:.2f}"
    line = next(line for line in done.stdout.splitlines() if line.strip().startswith("map_at_r"))
    assert line.split()[-1].removesuffix("%") == shown or line.split()[-2:] == [shown, "%"]
    run, pooled = (f"{100 * run.metrics()['map_at_r']:.2f} %" for run in (nearkin.train(tiny, runs=tmp_path), base))
    assert f"points of MAP@R: {run}, without training {pooled}" in " ".join(done.stdout.split())
    alone = call("train", *words_of(tiny), "seed=1", "--no-baseline", "--runs", tmp_path / "alone")
    assert "without training" not in " ".join(alone.stdout.split())
    assert len(list((tmp_path / "alone").glob("*/spec.yaml"))) == 1


class TestRemoving:
    def test_asks(self, tiny, tmp_path):
        run = nearkin.train(tiny, runs=tmp_path, epochs=0)
        for answer in ("n\n", "\n"):
            assert call("runs", "rm", run.hash, "--runs", tmp_path, input=answer).exit_code == 1
            assert run.path.exists()
        assert call("runs", "rm", run.hash, "--runs", tmp_path, input="y\n").exit_code == 0
        assert not run.path.exists()

    def test_several_at_once_or_none_of_them(self, tiny, tmp_path):
        a, b = (nearkin.train(tiny, runs=tmp_path, epochs=0, seed=seed) for seed in (0, 1))
        assert isinstance(call("runs", "rm", a.hash, "nope", "--yes", "--runs", tmp_path).exception, NearkinError)
        assert a.path.exists()
        assert call("runs", "rm", a.hash, b.hash, "--yes", "--runs", tmp_path).exit_code == 0
        assert not a.path.exists()
        assert not b.path.exists()

    @pytest.mark.parametrize("name", ["", "0", "nothing"])
    def test_an_empty_unknown_or_ambiguous_name_is_refused(self, tiny, tmp_path, name):
        for i in range(3):
            (tmp_path / f"0{i}").mkdir()
            (tmp_path / f"0{i}" / "spec.yaml").write_text("spec: {}")
        assert isinstance(call("runs", "rm", name, "--yes", "--runs", tmp_path).exception, NearkinError)
        assert len(list(tmp_path.iterdir())) == 3


class TestWaiting:
    def test_without_a_terminal_long_work_prints_lines(self, monkeypatch):
        monkeypatch.setattr(progress, "EVERY", 0.0)
        out = io.StringIO()
        with progress.bar("Decoding images", 10, console=Console(file=out)) as advance:
            for done in range(1, 4):
                advance(done, note="so far")
        lines = out.getvalue().splitlines()
        assert len(lines) == 3
        assert lines[0].startswith("Decoding images: 1 of 10, ")
        assert lines[0].endswith("left, so far")

    def test_short_work_prints_nothing(self):
        out = io.StringIO()
        with progress.bar("Decoding images", 10, console=Console(file=out)) as advance:
            advance(10)
        assert out.getvalue() == ""

    def test_training_tells_plan_epochs_and_speed(self, tiny, tmp_path, monkeypatch):
        monkeypatch.setattr(progress, "EVERY", 0.0)
        out = io.StringIO()
        with training_bar(Console(file=out, width=200), quiet=False) as watch:
            nearkin.train(tiny, runs=tmp_path, watch=watch)
        said = out.getvalue()
        assert said.startswith("data: train 100 images of 10 classes")
        assert "plan: 2 epochs of 6 steps, 12 steps in all, batches of 16; stored in" in said
        assert "training: 3 of 12" in said
        assert "images/s" in said
        assert "epoch   2/2  validation recall@1" in said

    def test_the_untrained_network_says_what_it_does(self, tiny, tmp_path):
        entries = []
        nearkin.train(tiny, runs=tmp_path, epochs=0, watch=entries.append)
        assert "no training" in plan_lines(entries[0]["plan"])[1]

    def test_progress_of_all_long_work(self, flowers, tmp_path, monkeypatch, capfd):
        monkeypatch.setattr(progress, "EVERY", 0.0)
        monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
        words = {
            "dataset": "folder",
            "root": str(flowers),
            "data.on_error": "skip",
            "dim": 4,
            "epochs": 1,
            "train.batch": 6,
            "sampler.per_class": 2,
        }
        run = nearkin.train(words, runs=tmp_path / "runs")
        nearkin.load(run).embed(flowers / "class01")
        said = capfd.readouterr().err
        for what in ("Hashing images", "Decoding images", "Embedding the test images", "Embedding"):
            assert f"{what}" in said


def test_stopped_at_once_it_says_that_nothing_was_saved(tiny, tmp_path):
    """A run that died before its first checkpoint."""
    entries = []

    def stop(entry):
        if "step" in entry:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        nearkin.train(tiny, runs=tmp_path, watch=stop)
    nearkin.train(tiny, runs=tmp_path, watch=entries.append)
    assert entries[0]["plan"]["again"]
    assert "nothing was saved yet" in plan_lines(entries[0]["plan"])[-1]


def commanded(words, told):
    """The command in a process forked from this one, with Python's own signal handlers; what it says goes to a file."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            file = os.open(told, os.O_WRONLY | os.O_CREAT)
            os.dup2(file, 1), os.dup2(file, 2)
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(io.FileIO(stream, "w"), line_buffering=True) for stream in (1, 2)
            )
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            sys.argv = ["nearkin", *words]
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 98
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    return pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_its_first_seconds_it_goes_on_there(kind, tmp_path):
    words = [
        "train",
        "dataset=glyphs",
        "data.classes=24",
        "data.per_class=10",
        "dim=16",
        "train.batch=16",
        "epochs=400",
        "--no-baseline",
        "--runs",
        str(tmp_path),
    ]
    told = tmp_path.with_name(f"{tmp_path.name}-told")
    process = commanded(words, told)
    deadline = time.monotonic() + 120
    while not any(log.stat().st_size for log in tmp_path.glob("*/log.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process, kind)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    said = told.read_text()
    assert code == (130 if kind == signal.SIGINT else 143)
    assert "interrupted; the same command goes on where this one stopped" in said
    assert "Traceback" not in said
    assert list(tmp_path.glob("*/checkpoint.pt"))
    entries = []

    class Enough(Exception):
        pass

    def watch(entry):
        entries.append(entry)
        if "step" in entry:
            raise Enough

    words = {"dataset": "glyphs", "data.classes": 24, "data.per_class": 10, "dim": 16, "train.batch": 16, "epochs": 400}
    with pytest.raises(Enough):
        nearkin.train(words, runs=tmp_path, watch=watch)
    resumed = next(entry["resumed"] for entry in entries if "resumed" in entry)
    assert resumed["step"] > 0
    assert entries[-1]["step"] == resumed["step"] + 1


class TestEmbedAndEvaluate:
    @pytest.fixture
    def run(self, flowers, tmp_path):
        words = {
            "dataset": "folder",
            "root": str(flowers),
            "data.on_error": "skip",
            "dim": 4,
            "epochs": 1,
            "train.batch": 6,
            "sampler.per_class": 2,
        }
        return nearkin.train(words, runs=tmp_path / "runs")

    def test_a_broken_image_stops_it_or_is_skipped(self, run, flowers, tmp_path):
        where = ("--runs", run.path.parent, "-o", tmp_path / "emb.npz")
        assert "broken.jpg" in str(call("embed", run.hash, flowers, *where).exception)
        done = call("embed", run.hash, flowers, "--skip", *where)
        assert done.exit_code == 0, done.exception
        assert "skipped: " in done.stdout
        with np.load(tmp_path / "emb.npz") as held:
            assert len(held["embeddings"]) == len(held["paths"]) == len(held["labels"]) == 72
            assert held["labels"][0] == "class00"
        measured = call("evaluate", tmp_path / "emb.npz", "--k", "1", "--json")
        assert json.loads(measured.stdout)["n"] == 36  # the run was trained on the others
        measured = call("evaluate", tmp_path / "emb.npz", "--k", "1", "--json", "--include-trained")
        assert json.loads(measured.stdout)["n"] == 72

    def test_links_are_followed(self, run, flowers, tmp_path):
        (tmp_path / "linked").mkdir()
        os.symlink(flowers / "class01", tmp_path / "linked" / "a")
        os.symlink(flowers / "class02" / "1.png", tmp_path / "linked" / "one.png")
        done = call("embed", run.hash, tmp_path / "linked", "-o", tmp_path / "e.npz", "--runs", run.path.parent)
        assert "7 images" in done.stdout, done.exception

    def test_a_run_is_evaluated_by_its_name(self, run):
        done = call("evaluate", run.hash[:8], "--runs", run.path.parent, "--json")
        assert json.loads(done.stdout)["metrics"] == pytest.approx(run.metrics())


class TestCache:
    def test_is_listed_and_cleared(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path))
        (tmp_path / "decoded" / "abc-64").mkdir(parents=True)
        (tmp_path / "decoded" / "abc-64" / "pixels.bin").write_bytes(bytes(2000))
        (tmp_path / "features").mkdir()
        (tmp_path / "features" / "x.npy").write_bytes(bytes(500))
        assert [(each.kind, each.size) for each in cached()] == [("decoded", 2000), ("features", 500)]
        assert "2.5 kB" in call("cache", "list").stdout
        assert call("cache", "clear", input="n\n").exit_code == 1
        assert len(cached()) == 2
        old = time.time() - 10 * 86400
        os.utime(tmp_path / "features" / "x.npy", (old, old))
        assert call("cache", "clear", "--older", "5", "--yes").exit_code == 0
        assert [each.kind for each in cached()] == ["decoded"]
        assert call("cache", "clear", "--yes").exit_code == 0
        assert cached() == []
        assert call("cache", "clear").stdout.strip() == "nothing to clear"

    def test_a_limit_keeps_what_was_used_last(self, tmp_path, monkeypatch):
        from nearkin.storage import atomic

        monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path))
        monkeypatch.setenv("NEARKIN_CACHE_LIMIT", "0.0000015")  # 1,500 bytes
        for i in range(3):
            with atomic(tmp_path / "features" / f"{i}.npy") as scratch:
                (scratch / f"{i}.npy").write_bytes(bytes(1000))
            os.utime(tmp_path / "features" / f"{i}.npy", (i, i))
        assert [each.path.name for each in cached()] == ["2.npy"]


def test_version_help_and_completion():
    assert call("--version").stdout.strip() == f"nearkin {nearkin.__version__}"
    for words in (["-h"], ["train", "-h"], ["runs", "list", "-h"]):
        assert call(*words).exit_code == 0
    assert "nearkin explain KEY" in " ".join(call("train", "--help").stdout.split())
    assert "--install-completion" in call("--help").stdout


@pytest.mark.parametrize(("words", "said"), [(["epochs="], "has no value"), (["dim=3", "dim=4"], "given twice")])
def test_words_without_value_or_given_twice(words, said):
    with pytest.raises(NearkinError, match=said):
        parse_words(words)


def test_a_learning_rate_that_is_too_high_is_told_as_such(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"(lower train\.lr|learning rate is too high)"):
        nearkin.train(tiny, runs=tmp_path, lr=1e30)
