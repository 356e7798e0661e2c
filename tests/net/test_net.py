"""What commit b077f9d did is still done: the same hashes, the same bits on resume, the same numbers in comparisons.

`make.py` made the fixture with that commit, and says how:

    hashes.json.xz      specs and their hashes: every cell of every ready study, recipes with losses, every setting by
                        itself, and a hundred odd specs
    renamed.json.xz     of these hashes those that are others now: why -> the hash then -> the hash now. Why is a list
                        of settings that counted then, although nothing reads them (config/reading.py) or null stands
                        for their value: of 3,354 runs, 2,786 had flip, crop_scale or crop_ratio at the data's own
                        values, mostly by a recipe, and 346 are untrained
    again.json          of these hashes those of runs that mean something else now, because a part's version was raised:
                        why -> the hash then -> the hash now. What is stored under the old name is not taken for them
    store.tar.xz        a store of tiny runs, finished and not; store.json tells their words, and what they come to when
                        nothing stops them
    balanced/           a study whose results were drawn, not trained; expected.json has the numbers that must stay. The
                        other files show what the commands said then: their words and format may change.
"""

import csv
import hashlib
import itertools
import json
import lzma
import platform
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

import nearkin
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.config.spec import completed, make_spec, stored_spec
from nearkin.data import Augment
from nearkin.models import convnet
from nearkin.present import read
from nearkin.runs.defaults import resolve
from nearkin.runs.names import resolved_before
from nearkin.runs.store import Store
from nearkin.statistics.verdict import judge
from nearkin.studies.grid import read_study
from nearkin.studies.runner import Job
from nearkin.studies.summary import rows_of, write_summary

HERE = Path(__file__).parent
HASHES = json.loads(lzma.decompress((HERE / "hashes.json.xz").read_bytes()))
STORE = json.loads((HERE / "store.json").read_text())
FINISHED = [name for name, told in STORE["runs"].items() if not told["stopped"]]
STOPPED = [name for name, told in STORE["runs"].items() if told["stopped"]]
CLOCKS = ("seconds", "tested")

# What is filled in otherwise for given weights today.
AT_THAT_TIME = {"model.init": "kaiming", "train.epochs": 8, "train.warmup": 0, "train.average": 0.0, "train.blend": 1.0}

# hash -> (the hash that it has now, why). A run that is stored under the old one must still be found.
WHY = json.loads(lzma.decompress((HERE / "renamed.json.xz").read_bytes()))
RENAMED: dict[str, tuple[str, str]] = {old: (new, why) for why, names in WHY.items() for old, new in names.items()}
AGAIN = {old: new for names in json.loads((HERE / "again.json").read_text()).values() for old, new in names.items()}


def unpacked(archive, folder):
    with tarfile.open(archive) as stored:
        stored.extractall(folder, filter="data")
    return folder / "runs"


# -- hashes ------------------------------------------------------------------------------------------------


def renamed(name):
    return AGAIN.get(name) or RENAMED.get(name, (name, ""))[0]


def differing(entries, made):
    """Of stored specs those whose hash is another now, or that the former rule would not find, one line each. Within an
    entry only seed and fold differ, on which nothing depends that is filled in: the spec is built once, because that
    takes most of the time."""
    found = []
    for entry in entries:
        spec = made(entry)
        resolved, before = resolve(spec, **known(spec)), resolved_before(spec)
        for seed, fold, name in entry["hashes"]:
            values = {"train": {"seed": seed}, "protocol": {} if fold is None else {"fold": fold}}
            now = with_values(resolved, **values).hash(HASHES["data"], HASHES["split"])
            then = with_values(before, **values).hash(HASHES["data"], HASHES["split"], former=True)
            if now != renamed(name):
                found.append(f"{entry['where']} seed {seed} fold {fold}: {renamed(name)} is {now} now")
            if (then == name) is (name in AGAIN):
                found.append(f"{entry['where']} seed {seed} fold {fold}: {name} is not found, but {then}")
    return "\n".join(found)


def known(spec):
    """What is known of the data once they are read: those of a ready study can all be read."""
    augment = Augment(crop_scale=None, flip=False) if spec.data.name == "glyphs" else Augment()
    return {"augment": augment, "validates": spec.protocol.name != "standard", "skips": False}


def with_values(spec, **values):
    return spec.model_copy(update={part: getattr(spec, part).model_copy(update=own) for part, own in values.items()})


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A loss from outside and a file of weights, which odd specs name and which count by their content."""
    for name, text in HASHES["files"].items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def test_cells_of_ready_studies_keep_their_hashes():
    """As runs store them: settings that are newer than the runs are what they were born with."""
    assert differing(HASHES["studies"], lambda entry: stored_spec(completed(entry["spec"]))) == ""


def test_a_name_changed_only_where_a_setting_counted_that_nothing_reads():
    """No setting is gone that is read elsewhere, and no two runs of different meaning share a name."""
    idle = {
        "data.crop_ratio",
        "data.crop_scale",
        "data.flip",
        "data.crop",
        "data.augment",
        "data.on_error",
        "model.dim",
        "model.freeze_bn",
        "model.parts",
        "model.views",
        "memory.warmup",
        "sampler.name",
        "train.batch",
        "train.clip_by",
        "train.eval_every",
        "train.gamma",
        "train.groups.head.lr",
        "train.lr",
        "train.momentum",
        "train.select",
        "train.step",
        "train.warmup",
    }
    assert {key for why in WHY for key in why.split(", ")} == idle
    assert len(RENAMED) == sum(map(len, WHY.values())) == 3354


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("group", ["recipes", "settings", "odd"])
def test_words_keep_their_hashes(group):
    """Recipes say all that is filled in otherwise today where weights are given."""

    def made(entry):
        return make_spec({} if "recipe" in entry["spec"] else AT_THAT_TIME, entry["spec"])

    assert differing(HASHES[group], made) == ""


@pytest.mark.usefixtures("files")
def test_odd_specs_as_runs_store_them_keep_their_hashes():
    assert differing(HASHES["odd"], lambda entry: stored_spec(completed(entry["stored"]))) == ""


# -- runs --------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch):
    """convnet with few channels, as the stored runs have it: their files would be a hundred times as large."""
    monkeypatch.setattr(convnet, "WIDTHS", tuple(STORE["widths"]))
    monkeypatch.setattr(convnet.ConvNet, "features", STORE["widths"][-1])


@pytest.fixture(scope="module")
def unpacked_once(tmp_path_factory):
    return unpacked(HERE / "store.tar.xz", tmp_path_factory.mktemp("store"))


@pytest.fixture
def runs(tmp_path, unpacked_once, narrow):
    return Path(shutil.copytree(unpacked_once, tmp_path / "runs"))


def machine():
    """What the last bits of a result depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    told = dict(reversed([[side.strip() for side in line.split(":", 1)] for line in lines if ":" in line]))
    cpu = " ".join(told.get(key, "") for key in ("model name", "cpu family", "model", "stepping"))
    return {
        "cpu": cpu if told else platform.processor(),
        "torch": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
    }


SAME_MACHINE = machine() == STORE["machine"]


def bits(run):
    """The loss of every step; SHA-256 of the final weights, of model and objective, and of the raw embeddings of the
    test images; of a trial, which is never tested, those of the validation images."""
    weights, state = hashlib.sha256(), run.load("model.pt")
    for part in ("model", "objective"):
        for value in state[part].values():
            weights.update(value.numpy().tobytes())
    with np.load(run.path / ("embeddings.npz" if run.tested else "validation.npz")) as held:
        embeddings = hashlib.sha256(held["embeddings"].tobytes())
    losses = [line["loss"] for line in run.log_lines() if "step" in line]
    return {"losses": losses, "weights": weights.hexdigest(), "embeddings": embeddings.hexdigest()}


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "lock"}


def check(run, told):
    """The run ended as the one that nothing stopped. The same bits can be asked for only where the CPU and PyTorch are
    those that made the fixture: others round otherwise, and there the metrics must be near."""
    assert run.done
    assert run.hash == renamed(told["hash"])
    pairs = [(run.read_json("final.json"), told["final"])]
    if told["result"] is not None:
        pairs.append((run.result | {"hash": told["hash"]}, told["result"]))
    if SAME_MACHINE:
        assert bits(run) == {key: told[key] for key in ("losses", "weights", "embeddings")}
        for now, then in pairs:
            assert now | dict.fromkeys(CLOCKS) == then | dict.fromkeys(CLOCKS)
    else:
        assert len(bits(run)["losses"]) == len(told["losses"])
        for now, then in pairs:
            assert now["split"] == then["split"]
            assert now["validation"] == pytest.approx(then["validation"], abs=0.15)  # of 20 images
        if told["result"] is not None:
            assert run.result["test"] == pytest.approx(told["result"]["test"], abs=0.05)


def test_all_runs_are_in_the_store(runs):
    stored = Store(runs).runs()
    assert {run.hash for run in stored} == {told["hash"] for told in STORE["runs"].values()}
    assert {run.hash for run in stored if run.done} == {STORE["runs"][name]["hash"] for name in FINISHED}


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_run_is_found_and_left_as_it_is(runs, name):
    told, before = STORE["runs"][name], content(runs)
    run = nearkin.train(told["words"], runs=runs)
    assert run.hash == renamed(told["hash"])
    assert run.read_json("final.json") == told["final"]
    assert (run.result if run.tested else None) == told["result"]
    assert content(runs) == before


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_run_goes_on_to_the_same_bits(runs, name):
    told, entries = STORE["runs"][name], []
    stop = told["stopped"]
    run = nearkin.train(told["words"], runs=runs, watch=entries.append)
    first = next(entry["step"] for entry in entries if "step" in entry)
    assert first == 1 + stop.get("step", stop.get("epoch", 0) * told["words"]["train.batches_per_epoch"])
    check(run, told)


@pytest.mark.skipif(not SAME_MACHINE, reason="another CPU or PyTorch: other last bits")
@pytest.mark.parametrize("name", ["finished", "curve", "memory", "hist", "drml", "bank interrupted"])
def test_trained_anew_it_has_the_same_bits(narrow, tmp_path, name):
    told = STORE["runs"][name]
    check(nearkin.train(told["words"], runs=tmp_path), told)


# -- a balanced comparison ---------------------------------------------------------------------------------


@pytest.fixture
def balanced(tmp_path):
    return unpacked(HERE / "balanced/store.tar.xz", tmp_path)


def measured(store):
    """What today's code says of the study, as expected.json has it: the one place that knows how it is asked."""
    found, gathered = {}, gather(["balanced"], store)
    for metric, by in (("map_at_r", "loss"), ("map_at_r", None), ("recall@1", "loss"), ("recall@1", None)):
        (comparison,) = compare(gathered, by=by and [by], metric=metric)
        rows = {
            m.name: {"values": {str(seed): value for seed, value in m.values.items()}, "mean": m.interval.mean}
            for m in comparison.methods
        }
        every = judge(list(itertools.combinations([m.row for m in comparison.methods], 2)))  # untrained ones too
        pairs = [
            {
                "first": p.first.name,
                "second": p.second.name,
                "mean": p.difference.mean,
                "std": p.difference.std,
                "seeds": p.difference.n,
            }
            for p in every
        ]
        found[f"{metric} by {by or 'all axes'}"] = {"rows": rows, "pairs": pairs}
    return found


def test_means_differences_and_spreads_stay_to_the_last_digit(balanced):
    expected, now = json.loads((HERE / "balanced/expected.json").read_text()), measured(balanced)
    assert list(now) == list(expected)
    for name, then in expected.items():
        assert now[name]["rows"] == then["rows"], name
        pairs = [{(p["first"], p["second"]): p for p in told["pairs"]} for told in (now[name], then)]
        assert pairs[0] == pairs[1], name


def summary(store, file):
    """The table of the study, as `nearkin study` writes it, and the values of every run beside it."""
    study = read_study(store / "study.yaml")
    told = json.loads((store / "studies/balanced/study.json").read_text())["cells"]
    jobs = [Job(cell, Store(store).run(each["run"]), study.asked) for cell, each in zip(study.cells, told, strict=True)]
    return write_summary(study, rows_of(study, jobs), jobs, file)


def test_the_table_of_the_study_stays(balanced, tmp_path):
    def listed(file):
        return [{k: v for k, v in row.items() if k != "notes"} for row in csv.DictReader(file.read_text().splitlines())]

    table, seeds = summary(balanced, tmp_path / "summary.parquet")
    shown = read(table)
    titles = [column.title for column in shown.shown]
    texts = [dict(zip(titles, line, strict=True)) for line in shown.texts()]
    assert texts == listed(HERE / "balanced/summary.csv")
    assert listed(seeds) == listed(HERE / "balanced/summary-seeds.csv")
