"""Analyses of one run, of several and of none: what is called, where results are stored, what is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
import pytest
from stores import add_run, losses_study
from typer.testing import CliRunner

from nearkin.analysis import Analysis, analyse
from nearkin.analysis.base import stored, stored_numbers
from nearkin.analysis.embedded import stratified
from nearkin.analysis.perform import folder_of
from nearkin.cli.app import app
from nearkin.cli.flags import in_flags
from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError
from nearkin.present import Bars, Column, Table
from nearkin.registry import ANALYSES
from nearkin.units import NUMBER


@dataclass(frozen=True)
class Single(Analysis):
    value: str

    @classmethod
    def of(cls, run):
        return cls(run.hash)

    @property
    def numbers(self):
        return {"first": self.value[0], "run": self.value}


@dataclass(frozen=True)
class Both(Analysis):
    together = True
    names: list
    options: dict

    @classmethod
    def between(cls, gathered, *, images=200, seed=0):
        return cls([m.run.hash for m in gathered.tested], {"images": images, "seed": seed})

    @property
    def numbers(self):
        return {"runs": self.names}

    @property
    def tables(self):
        length = Column("length", unit=NUMBER, digits=1)
        return [Table("lengths", ["run", length], [[n, len(n) + 0.5] for n in self.names], "runs", ["a note"])]

    @property
    def charts(self):
        return [Bars(name="bars", table=self.tables[0], x="run", y="length")]


@dataclass(frozen=True)
class Nothing(Both):
    needs_runs = False

    @classmethod
    def between(cls, gathered):
        return cls([] if gathered is None else [m.run.hash for m in gathered.tested], {})


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(ANALYSES, "_registered", dict(ANALYSES._classes))
    for name, cls in (("single", Single), ("both", Both), ("nothing", Nothing)):
        ANALYSES.register(name)(cls)


@pytest.fixture
def store(registered, tmp_path):
    return losses_study(tmp_path, {"contrastive": {0: 0.3, 1: 0.4}, "triplet": {0: 0.2}})


def call(*words):
    done = CliRunner().invoke(app, ["analyse", *map(str, words)])
    if isinstance(done.exception, NearkinError):
        raise done.exception
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_one_run(store, tmp_path):
    told = json.loads(call("single", "contrastive0", "--runs", store, "--json"))
    assert told == {"first": "c", "run": "contrastive0"}
    assert stored_numbers(Single, store / "contrastive0" / "analysis") == told
    call("single", store / "contrastive0", "-o", tmp_path / "there")  # by its path, whatever --runs is
    assert stored_numbers(Single, tmp_path / "there") == told


def test_a_study_run_by_run(store, tmp_path):
    told = json.loads(call("single", "toy", "--runs", store, "--json", "-o", tmp_path / "there"))
    hashes = ["contrastive0", "contrastive1", "triplet00000"]
    assert list(told) == hashes
    for name in hashes:
        for folder in (store / name / "analysis", tmp_path / "there" / name):
            assert stored_numbers(Single, folder) == told[name]
    printed = call("single", "toy", "--runs", store)
    assert all(name in printed for name in hashes)


def test_runs_together(store, tmp_path):
    told = json.loads(call("both", "toy", "--runs", store, "--json", "--images", 7, "-o", tmp_path / "there"))
    for folder in (store / "studies" / "toy" / "analysis", tmp_path / "there"):
        names = {"both.json", "both-lengths.parquet", "both-bars.png", "both.md"}
        assert {file.name for file in folder.iterdir()} == names
        assert stored_numbers(Both, folder, {"images": 7, "seed": 0}) == told
        assert stored_numbers(Both, folder, {"images": 8, "seed": 0}) is None
        assert pq.read_table(folder / "both-lengths.parquet")["length"].to_pylist() == [12.5, 12.5, 12.5]
        assert stored(Both, folder).tables[0].markdown() == Both(told["runs"], {}).tables[0].markdown()
    assert "| contrastive0 | 12.5 |" in (tmp_path / "there" / "both.md").read_text()
    call("both", "contrastive0", "triplet", "--runs", store, "--all")
    content = json.loads((store / "analysis" / "both.json").read_text())
    assert content["options"]["images"] is None
    assert content["numbers"] == {"runs": ["contrastive0", "triplet00000"]}


def test_the_command_is_the_call(store):
    """The same numbers, the same printed lines, and a value that notebooks and other tools can read."""
    result = analyse("both", "toy", runs=store, images=7)
    assert result.numbers == json.loads(call("both", "toy", "--runs", store, "--images", 7, "--json"))
    assert str(result).split() == call("both", "toy", "--runs", store, "--images", 7).split()
    assert result.to_arrow()["length"].to_pylist() == [12.5, 12.5, 12.5]
    assert "<table" in result._repr_html_()
    assert [chart.name for chart in result.charts] == ["bars"]
    assert {file.name for file in result.files} >= {"both.json", "both-bars.png"}


EITHER = ["loss=triplet", "loss=contrastive"]


def test_a_slice_leaves_the_results_of_the_study_alone(store):
    whole = analyse("both", "toy", runs=store).numbers
    part = json.loads(call("both", "toy", "--runs", store, "--where", "loss=contrastive", "--json"))
    assert part == {"runs": ["contrastive0", "contrastive1"]}
    folder = store / "studies" / "toy" / "analysis"
    assert stored_numbers(Both, folder) == whole
    assert stored_numbers(Both, folder / "loss=contrastive") == part
    assert folder_of(Both, gather(["toy"], store, ["loss=contrastive"])) == folder / "loss=contrastive"
    for loss in ("contrastive", "triplet"):  # a mapping says the same as words
        result = analyse("both", "toy", runs=store, where={"loss": loss})
        assert {file.parent.name for file in result.files} == {f"loss={loss}"}
    either = [folder_of(Both, gather(["toy"], store, words)) for words in (EITHER, EITHER[::-1])]
    assert either[0] == either[1]  # the order of the words is no other slice
    for words, message in (
        (["both", "toy", "--where", "loss=margin"], "where=loss=margin: no run has it"),
        (["nothing", "--where", "loss=margin"], "only stored runs have settings"),
    ):
        with pytest.raises(NearkinError, match=message):
            call(*words, "--runs", store)


@pytest.mark.parametrize("content", ['{"first": "x", "run": "y"}', '{"version": 1, "opt', "[]", "null"])
def test_what_an_earlier_version_stored_is_made_again(store, content):
    """NAME.json without numbers of their own, beside sheets of words; or a damaged one."""
    folder = store / "contrastive0" / "analysis"
    folder.mkdir()
    (folder / "single.json").write_text(content)
    (folder / "single-sheets.json").write_text("[]")
    assert stored(Single, folder) is None
    assert stored_numbers(Single, folder) is None
    call("single", "contrastive0", "--runs", store)
    assert stored_numbers(Single, folder) == {"first": "c", "run": "contrastive0"}


def test_several_analyses_and_one_that_needs_no_run(store, tmp_path):
    told = json.loads(call("both,nothing", "toy", "--runs", store, "--json"))
    assert told["both"]["runs"] == told["nothing"]["runs"]
    assert json.loads(call("nothing", "-o", tmp_path / "there", "--runs", store, "--json"))["runs"] == []
    assert (tmp_path / "there" / "nothing.json").exists()


def test_bad_input_is_one_sentence(store):
    add_run(store, "untested0000", {"loss": "margin"}, {"map_at_r": 0.1})
    (store / "untested0000" / "result.json").unlink()
    for words, match in [
        (["sinle", "toy"], "did you mean single"),
        (["single"], "analyse single: name a run, a study, or a folder of runs"),
        (["single", "nope"], "no study and no run 'nope'"),
        (["single", "untested"], "run untested0000 is not tested: nearkin test untested0000"),
        (["both", "toy", "untested"], "no run 'toy'"),
        (["single", "toy", "--images", "3"], "--images 3: no option of analysis single; choices: none"),
        (["both", "toy", "--images", "3", "--all"], "--images 3 and --all: give one of the two"),
        (["both", "toy", "--images", "0"], "--images 0: at least 1"),
    ]:
        with pytest.raises(NearkinError) as error:
            call(*words, "--runs", store)
        assert match in in_flags(str(error.value))


def test_a_stratified_sample_takes_the_classes_in_turn():
    labels = np.repeat(list("abcdef"), [1, 30, 30, 30, 4, 30])
    for n in (1, 3, 6, 20, 40):
        chosen = stratified(labels, n, seed=5)
        assert len(set(chosen.tolist())) == n
        assert (np.diff(chosen) > 0).all()
        counts = np.array([(labels[chosen] == c).sum() for c in "abcdef"])
        most = counts.max()
        sizes = np.array([1, 30, 30, 30, 4, 30])
        assert (counts >= np.minimum(most - 1, sizes)).all()
        assert (stratified(labels, n, seed=5) == chosen).all()
    assert (stratified(labels, 20, seed=6) != stratified(labels, 20, seed=5)).any()
    assert (stratified(labels, None) == np.arange(125)).all()
    assert (stratified(labels, 999) == np.arange(125)).all()


def test_files_of_embeddings(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 5)
    for i in range(2):
        np.savez(tmp_path / f"net{i}.npz", embeddings=rng.normal(size=(40, 6)), labels=labels, colour=labels % 2)
    files = [tmp_path / "net0.npz", tmp_path / "net1.npz"]
    told = json.loads(call("similarity", *files, "--json"))
    assert told["levels"]["embedding"]["cka"]["matrix"][0][1] < 1
    told = json.loads(call("properties,spectrum", files[0], "--json", "-o", tmp_path / "there"))
    assert set(told["properties"]["properties"]) == {"class", "colour"}
    assert told["spectrum"]["images"] == 40
    assert (tmp_path / "there" / "spectrum-curves.png").exists()
    for words, said in (
        (("spectrum", *files), "one file of embeddings, not at 2"),
        (("saliency", files[0]), "looks at stored runs"),
        (("spectrum", files[0], "cub"), "one or the other"),
    ):
        done = CliRunner().invoke(app, ["analyse", *map(str, words)])
        assert isinstance(done.exception, NearkinError)
        assert said in str(done.exception)
