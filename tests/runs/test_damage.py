"""Every file of a run, of an unfinished run, of a study and of the cache: removed, emptied, truncated, one bit flipped,
a folder or a link in its place. Never a wrong number without a word, never a traceback, and other runs are shown."""

import json
import os
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs.run import Run
from nearkin.runs.store import Store
from nearkin.runs.verify import verify

TINY = {
    "dataset": "glyphs",
    "data.classes": 12,
    "data.per_class": 6,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 8,
    "sampler.per_class": 2,
    "epochs": 2,
    "train.batches_per_epoch": 2,
}
FILES = (
    "spec.yaml",
    "split.json",
    "environment.json",
    "log.jsonl",
    "model.pt",
    "validation.npz",
    "final.json",
    "embeddings.npz",
    "test.parquet",
    "per_query.parquet",
    "curve.json",
    "result.json",
    "tests.json",
    "files.json",
    "curve/epoch-0001.npy",
    "curve/epoch-0002.npy",
    "lock",
)
UNFINISHED = (
    "spec.yaml",
    "split.json",
    "environment.json",
    "log.jsonl",
    "checkpoint.pt",
    "model",
    "files.json",
    "lock",
)
DAMAGES = ("removed", "emptied", "truncated", "flipped", "folder", "link")
DAMAGES_OF_RUNS = [  # an empty file is a truncated one: of every file of a run in `make test-slow`
    pytest.param(how, marks=pytest.mark.slow) if how == "emptied" else how for how in DAMAGES
]
NUMBER = re.compile(r"\d+\.\d+")


def number_in(path):
    """Where in a file of weights or embeddings the first number of an array begins that is read in any case: the zip
    around it stays readable, and torch does not look at its CRC-32. None for other files."""
    if path.name == "model.pt":
        weights = torch.load(path, weights_only=True)["model"]
        weight = next(weight for name, weight in weights.items() if name.endswith("weight"))
        numbers = bytes(weight.untyped_storage().tolist())
    elif path.name in ("embeddings.npz", "validation.npz"):
        numbers = np.load(path)["embeddings"].tobytes()
    else:
        return None
    place = path.read_bytes().index(numbers)
    assert place % 4 == 0, "numbers are aligned"
    return place


def damage(path, how):
    """Do it; a link leads to a file of the same kind with another content."""
    content = path.read_bytes()
    changed = bytearray(content)
    told = re.search(rb"map_at_r\": 0\.|seed\W+|sha256\": \"|train\W+|cpu\": \"", content)  # before what is shown
    if told and path.suffix in (".json", ".yaml"):
        changed[told.end()] ^= 1  # another digit
    elif content:
        changed[(number_in(path) or len(content) // 2) | 3] ^= 64  # the exponent of a number: a large difference
    path.unlink()
    if how == "emptied":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(content[: len(content) * 2 // 3])
    elif how == "flipped":
        path.write_bytes(changed)
    elif how == "folder":
        path.mkdir()
    elif how == "link":
        elsewhere = path.parent.parent / "elsewhere"
        elsewhere.write_bytes(changed)
        path.symlink_to(elsewhere)


def looks(runs, run):
    """Commands that show a run."""
    return (
        ("runs", "list", "--json"),
        ("runs", "show", run),
        ("runs", "show", run, "--json"),
        ("test", run, "--json"),
        ("compare", runs, "--by", "seed"),
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run with a test curve and a further test, and an unfinished one, which has a checkpoint."""
    root = tmp_path_factory.mktemp("made")
    good, run = (nearkin.train(TINY | {"train.curve": True}, runs=root / "runs", seed=seed) for seed in (0, 1))
    for each in (good, run):
        nearkin.test(each, metrics=["nmi"])
    patch = pytest.MonkeyPatch()
    patch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    begun = nearkin.train(TINY, runs=root / "begun", until=1)
    straight = nearkin.train(TINY, runs=root / "straight")
    patch.undo()
    (root / "images").mkdir()
    Image.new("RGB", (20, 20), "red").save(root / "images" / "a.png")
    told = {words: said(*words, "--runs", root / "runs")[1] for words in looks(root / "runs", run.hash)}
    assert said("embed", run.hash, root / "images", "-o", root / "e.npz", "--runs", root / "runs")[0] == 0
    return {
        "root": root,
        "told": list(told.values()),
        "embedded": np.load(root / "e.npz")["embeddings"],
        "good": good.hash,
        "run": run.hash,
        "begun": begun.hash,
        "metrics": run.metrics(),
        "straight": straight.load("model.pt")["model"],
    }


def said(*words):
    """Exit code, all words; an exception other than ours, or an OSError, fails the test."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    error = done.exception
    assert error is None or isinstance(error, NearkinError | SystemExit | OSError), (words, repr(error))
    return done.exit_code, done.output + (str(error) if isinstance(error, NearkinError | OSError) else "")


def attempted(act):
    """What it gives, and the error that it ends with instead; others than ours and an OSError fail the test."""
    try:
        return act(), None
    except (NearkinError, OSError) as error:
        return None, error


def named(output):
    return "damaged" in output or "cannot be read" in output or "is missing" in output


@pytest.mark.parametrize("how", DAMAGES_OF_RUNS)
@pytest.mark.parametrize("name", FILES)
def test_a_finished_run(made, tmp_path, name, how):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    run, good = made["run"], made["good"]
    where = ("--runs", runs)
    images, output = made["root"] / "images", tmp_path / "e.npz"
    damage(runs / run / name, how)
    looked_at = verify(Run(runs / run), deep=True)
    problem = bool(looked_at.problems)
    assert problem or name in ("lock",) or (name, how) == ("files.json", "removed"), "verify sees it"
    assert looked_at.listed != ((name, how) == ("files.json", "removed"))
    for words, before in zip(looks(runs, run), made["told"], strict=True):
        code, after = said(*words, *where)
        if "list" in words or "compare" in words:
            assert code == 0 or (name, "compare") == ("spec.yaml", words[0]), after
        if set(NUMBER.findall(after)) - set(NUMBER.findall(before)):
            assert named(after), (words, before, after)
        if name == "spec.yaml" and how in ("flipped", "link"):
            assert named(after), (words, before, after)  # other settings are no number
        if code:
            assert named(after), after
    assert good in said("runs", "list", *where)[1]
    code, after = said("embed", run, images, "-o", output, *where)
    assert named(after) if code else np.array_equal(np.load(output)["embeddings"], made["embedded"]), after
    if name == "model.pt":
        assert code, "a model that differs embeds nothing"
        assert f"run {run} is damaged: model.pt" in after, after
    if name == "embeddings.npz":
        for words in (("test", run, "--metrics", "ami"), ("evaluate", run)):
            code, after = said(*words, *where)
            assert code, words
            assert f"run {run} is damaged: embeddings.npz" in after, (words, after)
    code, page = said("report", runs, "-o", tmp_path / "page.html", "--no-map", *where)
    assert code == 0, page
    assert not list(tmp_path.glob("elsewhere*")) or (runs / "elsewhere").exists()


@pytest.mark.parametrize("how", DAMAGES_OF_RUNS)
@pytest.mark.parametrize("name", UNFINISHED)
def test_an_unfinished_run_ends_with_the_same_bits_or_with_a_word(made, tmp_path, name, how):
    runs = shutil.copytree(made["root"] / "begun", tmp_path / "runs")
    path = runs / made["begun"]
    file = next(path.glob("model-*.pt")) if name == "model" else path / name
    damage(file, how)
    code, told = said("runs", "list", "--runs", runs)
    assert code == 0, told
    run, error = attempted(lambda: nearkin.train(TINY, runs=runs))
    if error is not None:  # one line on the command line
        assert re.search(r"damaged|link|cannot write|Is a directory", str(error)), error
        return
    weights = run.load("model.pt")["model"]
    assert all((weights[key] == value).all() for key, value in made["straight"].items())
    assert run.final


@pytest.mark.parametrize("how", DAMAGES)
def test_a_study(made, tmp_path, how):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    study = tmp_path / "small.yaml"
    words = "".join(f"  {key}: {str(value).lower()}\n" for key, value in (TINY | {"train.curve": True}).items())
    study.write_text(f"name: small\nbase:\n{words}axes:\n  loss: [triplet]\nseeds: [0]\nbaselines: []\n")
    code, before = said("study", study, "--runs", runs)
    assert code == 0, before
    file = runs / "studies" / "small" / "study.json"
    damage(file, how)
    code, told = said("compare", "small", "--runs", runs)
    assert code != 0, told
    assert re.search(r"damaged|no study", told), told
    if how != "folder":
        assert said("study", study, "--runs", runs)[0] == 0  # which writes it anew
        assert said("compare", "small", "--runs", runs)[0] in (0, 1)


def test_a_damaged_member_of_a_study_leaves_the_others(made, tmp_path):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    for content in ("[]", "null", "{}", '{"test": []}', "\x00\xff"):
        (runs / made["run"] / "result.json").write_text(content, "latin-1")
        (runs / made["run"] / "files.json").unlink(missing_ok=True)
        code, told = said("runs", "list", "--json", "--runs", runs)
        assert code == 0
        states = {each["run"]: each["state"] for each in json.loads(told)}
        assert states[made["good"]] == "tested"
        assert states[made["run"]].startswith("damaged: result.json"), states
        code, told = said("compare", runs, "--by", "seed", "--runs", runs)
        assert (code, f"run {made['run']} is damaged: result.json" in " ".join(told.split())) == (0, True), told


def cache_files(root):
    return sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")


@pytest.mark.parametrize("how", DAMAGES)
def test_caches_heal(tmp_path, monkeypatch, how):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
    images = tmp_path / "images"
    for k in range(6):
        (images / f"class{k}").mkdir(parents=True)
        for i in range(4):
            Image.effect_noise((24, 24), 10 + 30 * k + i).convert("RGB").save(images / f"class{k}" / f"{i}.png")

    def read():
        table = nearkin.data.load_table("folder", root=images)
        held = nearkin.data.open_images(table, resize=16, cache="decoded")
        glyphs = nearkin.data.Glyphs(classes=4, per_class=2, size=16).load()
        pixels = [held[i].tobytes() for i in range(len(held))]
        return nearkin.data.cache.data_hash(table), pixels, glyphs.images.tobytes()

    before = read()
    names = [file.relative_to(tmp_path) for file in cache_files(tmp_path / "cache")]
    assert {name.parts[1] for name in names} == {"decoded", "hashes", "glyphs"}
    for name in names:
        damage(tmp_path / name, how)
        after, error = attempted(read)
        if how == "folder" and error is not None:  # a folder where a file should be, of one line
            continue
        assert (after, error) == (before, None), name
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        read()


def test_a_kill_between_a_file_and_its_sum_damages_nothing(made, tmp_path, monkeypatch):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    run = Run(runs / made["run"])
    seal = Run.seal

    def killed(self, *, begin=False):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "seal", killed)
    with pytest.raises(KeyboardInterrupt):
        nearkin.test(run, metrics=["ami"])
    monkeypatch.setattr(Run, "seal", seal)
    stopped = Run(run.path)
    assert stopped.untidy
    assert verify(stopped, deep=True).problems == []
    assert "ami" in stopped.metrics()
    nearkin.test(stopped, metrics=["ami"])
    assert not stopped.untidy
    assert json.loads((run.path / "files.json").read_text())["coming"] == {}


def test_a_file_that_was_altered_is_never_listed_as_good(made, tmp_path):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    run = Run(runs / made["run"])
    damage(run.path / "model.pt", "flipped")
    nearkin.test(run, metrics=["ami"])  # from stored embeddings
    assert verify(Run(run.path), deep=True).problems == ["model.pt is altered: its SHA-256 differs"]


def test_verify_on_the_command_line(made, tmp_path):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    assert said("runs", "verify", "--deep", "--runs", runs)[0] == 0
    damage(runs / made["run"] / "embeddings.npz", "truncated")
    (runs / made["good"] / "files.json").unlink()
    code, told = said("runs", "verify", "--runs", runs)
    assert code == 1
    assert f"{made['run']}  damaged: embeddings.npz is truncated" in told
    assert f"{made['good']}  unverified: it has no checksums (files.json); its settings match its name" in told
    assert "1 of 2 runs are unverified" in said("runs", "list", "--runs", runs)[1]
    spec = runs / made["good"] / "spec.yaml"
    spec.write_text(spec.read_text().replace("dim: 8", "dim: 9"))
    assert "its settings do not match its name" in said("runs", "show", made["good"], "--runs", runs)[1]


class TestRemoval:
    def test_only_runs_of_the_store_are_removed(self, made, tmp_path, monkeypatch):
        runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
        project = tmp_path / "project"
        project.mkdir()
        (project / "spec.yaml").write_text("openapi: 3.0")
        (project / "thesis.tex").write_text("years")
        hexed = shutil.copytree(project, runs / "0123456789ab")
        other = shutil.copytree(made["root"] / "runs" / made["run"], tmp_path / "other" / made["run"])
        (runs / "abcdefabcdef").symlink_to(other)
        monkeypatch.chdir(runs / made["run"])
        for name in (project, hexed, other, runs / "abcdefabcdef", ".", "..", runs):
            code, told = said("runs", "rm", name, "-y", "--runs", runs)
            assert code, told
            assert re.search("is not removed|no run", told), told
        assert (project / "thesis.tex").exists()
        assert (hexed / "thesis.tex").exists()
        assert (other / "result.json").exists()

    def test_removed_runs_lie_in_the_trash_until_it_is_emptied(self, made, tmp_path):
        runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
        code, told = said("runs", "rm", made["run"], "-y", "--runs", runs)
        assert (code, f"removed {made['run']}" in told) == (0, True), told
        assert [run.hash for run in Store(runs).runs()] == [made["good"]]
        (place,) = (runs / ".trash").iterdir()
        assert (place / "result.json").exists()
        assert said("runs", "rm", "--purge", "-y", "--runs", runs)[0] == 0
        assert list((runs / ".trash").iterdir()) == []

    def test_a_damaged_run_can_be_removed(self, made, tmp_path):
        runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
        (runs / made["run"] / "spec.yaml").unlink()
        assert said("runs", "rm", made["run"], "-y", "--runs", runs)[0] == 0


class TestLinks:
    @pytest.mark.parametrize("name", ["log.jsonl", "lock", "curve", "openings.jsonl"])
    def test_nothing_is_written_through_a_link(self, made, tmp_path, name):
        runs, outside = tmp_path / "runs", tmp_path / "outside"
        place = runs / name if name == "openings.jsonl" else runs / made["begun"] / name
        if name == "curve":  # of a run that has one
            nearkin.train(TINY | {"train.curve": True}, runs=runs, until=1)
            shutil.move(place, outside)
            before = list(outside.iterdir())
        else:
            shutil.copytree(made["root"] / "begun", runs)
            place.unlink(missing_ok=True)
            outside.write_text("mine")
        place.symlink_to(outside)
        with pytest.raises(NearkinError, match="is a link to"):
            nearkin.train(TINY | ({"train.curve": True} if name == "curve" else {}), runs=runs)
        assert list(outside.iterdir()) == before if name == "curve" else outside.read_text() == "mine"

    def test_nor_are_events(self, made, tmp_path):
        pytest.importorskip("tensorboard")
        for started in (True, False):  # the second: before there is a spec.yaml
            runs = tmp_path / f"{started}"
            shutil.copytree(made["root"] / "begun", runs) if started else (runs / made["begun"]).mkdir(parents=True)
            outside = tmp_path / f"outside {started}"
            outside.mkdir()
            (runs / made["begun"] / "tensorboard").symlink_to(outside)
            with pytest.raises(NearkinError, match="is a link to"):
                nearkin.train(TINY, runs=runs, tensorboard=True)
            assert list(outside.iterdir()) == []

    def test_nor_are_analyses_and_reproductions(self, made, tmp_path):
        runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
        outside = tmp_path / "outside"
        outside.mkdir()
        for place, words in (
            (runs / made["run"] / "analysis", ("analyse", "spectrum", made["run"])),
            (runs / "reproductions", ("runs", "reproduce", made["run"])),
        ):
            place.symlink_to(outside)
            code, told = said(*words, "--runs", runs)
            assert code, told
            assert "is a link to" in told
            assert list(outside.iterdir()) == []


def test_a_store_that_cannot_be_written_shows_what_is_finished(made, tmp_path, monkeypatch):
    import errno

    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    opened, made_folder = os.open, os.mkdir

    def refuse(path, flags, *args, **kwargs):
        if str(path).startswith(str(runs)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, flags, *args, **kwargs)

    def refuse_folder(path, *args, **kwargs):
        if str(path).startswith(str(runs)):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return made_folder(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "mkdir", refuse_folder)
    words = [f"{key}={str(value).lower()}" for key, value in (TINY | {"train.curve": True, "train.seed": 1}).items()]
    code, told = said("train", *words, "--runs", runs)
    assert code == 0, told
    code, told = said("test", made["run"], "--runs", runs)
    assert code == 0, told
    code, told = said("test", made["run"], "--metrics", "ami", "--runs", runs)
    assert (code, "Read-only file system" in told) == (1, True)


def test_a_note_of_a_failed_worker_may_hold_anything(made, tmp_path):
    for content in (b"", b"\n\n", b"\xff\xfe\x00", "ä" * 5000):
        runs = shutil.copytree(made["root"] / "begun", tmp_path / "runs", dirs_exist_ok=True)
        (runs / made["begun"] / "error.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
        code, told = said("runs", "list", "--runs", runs)
        assert (code, "failed:" in " ".join(told.split())) == (0, True), told


def test_a_test_that_was_killed_is_counted_once(made, tmp_path, monkeypatch):
    run = nearkin.train(TINY, runs=tmp_path, test=False)
    with monkeypatch.context() as patch:
        patch.setattr("nearkin.runs.test._store_first", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            nearkin.test(run)
    nearkin.test(run)
    assert list(Store(tmp_path).openings().values()) == [1]


def test_what_a_kill_keeps_a_final_run_from_is_done_by_the_next_call(made, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Run, "tidy", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            nearkin.train(TINY | {"purpose": "trial"}, runs=tmp_path)
    (path,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert list(path.glob("model-*.pt"))
    run = nearkin.train(TINY | {"purpose": "trial"}, runs=tmp_path)
    assert not list(path.glob("model-*.pt"))
    assert run.sums().of("final.json")


def test_the_split_that_a_kill_left_out_is_written(tmp_path):
    stopped = nearkin.train(TINY, runs=tmp_path, until=1)
    split = (stopped.path / "split.json").read_bytes()
    (stopped.path / "split.json").unlink()
    assert (nearkin.train(TINY, runs=tmp_path).path / "split.json").read_bytes() == split


def test_an_epoch_that_ends_with_a_kill_is_logged_as_any_other(tmp_path):
    words = TINY | {"method": "drml", "model.parts": 2}

    def stop(entry):
        if entry.get("step") == 2:  # the last of its epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nearkin.train(words, runs=tmp_path / "stopped", watch=stop)
    runs = nearkin.train(words, runs=tmp_path / "stopped"), nearkin.train(words, runs=tmp_path / "straight")
    logs = [[{k: v for k, v in line.items() if k != "images_per_s"} for line in run.log_lines()] for run in runs]
    assert logs[0] == logs[1]
    assert all("branches" in line for line in logs[0] if "epoch_end" in line)


def test_git_is_asked_without_its_locks(monkeypatch):
    from nearkin.runs import environment

    asked, run = [], environment.subprocess.run

    def noted(words, **more):
        asked.append(words)
        return run(words, **more)

    monkeypatch.setattr(environment, "_commit", environment._commit.__wrapped__)  # not what was noted before
    monkeypatch.setattr(environment.subprocess, "run", noted)
    environment.environment()
    assert asked
    assert all(words[:2] == ["git", "--no-optional-locks"] for words in asked)


def test_an_edited_result_is_not_reproduced(made, tmp_path):
    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    path = runs / made["run"]
    result = json.loads((path / "result.json").read_text())
    result["test"]["recall@1"] = 0.95
    (path / "result.json").write_text(json.dumps(result))
    code, told = said("runs", "reproduce", made["run"], "--runs", runs)
    assert (code, "result.json is not what was stored" in told) == (1, True), told
    (path / "files.json").unlink()  # as an older nearkin stored it
    code, told = said("runs", "reproduce", made["run"], "--runs", runs)
    assert (code, "not reproduced: the same weights and embeddings, but a metric differs" in told) == (1, True), told


def test_a_report_goes_on_while_runs_come_and_go(made, tmp_path):
    from nearkin.comparison.gather import gather
    from nearkin.pages._build import build

    runs = shutil.copytree(made["root"] / "runs", tmp_path / "runs")
    (runs / "fedcba987654").mkdir()  # without a file yet
    young = runs / "0123456789ab"
    young.mkdir()
    shutil.copy(runs / made["run"] / "spec.yaml", young)  # one that has just begun
    code, told = said("report", runs, "-o", tmp_path / "page.html", "--no-map", "--runs", runs)
    assert (code, "damaged" in told + (tmp_path / "page.html").read_text()) == (0, False), told
    gathered = gather([str(runs)], runs)
    Store(runs).remove(Run(runs / made["run"]))
    assert "is damaged" not in str(build(gathered, map=False))
