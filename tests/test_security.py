"""What a stranger's run or YAML can do: be looked at, and be refused. SECURITY.md says what is trusted."""

import shutil
import sys

import numpy as np
import pytest
import yaml
from PIL import Image
from tiny import TINY
from typer.testing import CliRunner

import nearkin.runs.embed
from nearkin import consent
from nearkin.cli.app import app
from nearkin.cli.flags import in_flags
from nearkin.config.spec import make_spec, stored_spec
from nearkin.errors import NearkinError
from nearkin.runs.store import Run

PARTS = ("protocol", "loss", "sampler", "data", "miner", "regulariser", "method")
NAMED = (*PARTS, "backbone", "head", "select")
POPEN = {"name": "subprocess.Popen", "args": "touch executed", "shell": True}
PLANTED = """
from pathlib import Path

Path(__file__).with_name("imported").touch()

from nearkin.losses import PairLoss
from nearkin.models.convnet import ConvNet


class Part(PairLoss):
    def __init__(self, *, weight: float = 1.0):
        super().__init__()
        self.weight = weight

    def compute(self, pairs, tuples=None):
        return self.weight * (pairs.d2 * pairs.positive).mean()


class Net(ConvNet):
    pass
"""


@pytest.fixture(autouse=True)
def _nothing_consented(monkeypatch):
    """As in a process that has just begun."""
    monkeypatch.setattr(consent, "_wanted", set())
    monkeypatch.setattr(consent, "_stored", set())
    monkeypatch.delenv(consent.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("planted", None)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A store with one tested run."""
    small = {"data.classes": 12, "data.size": 16, "epochs": 1}
    return nearkin.train(TINY | small, runs=tmp_path_factory.mktemp("honest"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder of a victim: a module lies in it, and a picture."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.py").write_text(PLANTED)
    (tmp_path / "pictures").mkdir()
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(tmp_path / "pictures" / "0.png")
    return tmp_path


def hostile(honest, here, part, named):
    """runs/<hash>: the same run, with a part that is named otherwise, and without checksums."""
    folder = here / "runs" / honest.hash
    shutil.copytree(honest.path, folder)
    head = yaml.safe_load((folder / "spec.yaml").read_text())
    if part in PARTS:
        head["spec"][part] = {**(head["spec"][part] if part == "data" else {}), **named}
    else:
        head["spec"]["train" if part == "select" else "model"][part] = named["name"]
    (folder / "spec.yaml").write_text(yaml.safe_dump(head))
    (folder / "files.json").unlink(missing_ok=True)
    return folder


def call(*words):
    """Carry out a command; what it said. An error is one of ours, or none."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, NearkinError | SystemExit), (words, done.exc_info)
    return str(done.exception) if isinstance(done.exception, NearkinError) else done.output


LOOKING = (
    ["runs", "list"],
    ["runs", "show"],
    ["runs", "verify"],
    ["compare"],
    ["compare", "--metric", "nmi"],
    ["report", "--no-map"],
    ["evaluate"],
)
WORKING = (
    ["test"],
    ["test", "--metrics", "nmi"],
    ["runs", "reproduce"],
    ["analyse", "spectrum"],
    ["analyse", "saliency"],
)


PLANT = {"name": "planted.Part", "weight": 2.0}


@pytest.mark.parametrize("part", NAMED)
class TestAStrangersRun:
    @pytest.mark.parametrize(
        "named", [pytest.param(POPEN, id="popen", marks=pytest.mark.slow), pytest.param(PLANT, id="planted")]
    )
    def test_nothing_of_it_is_executed_or_imported(self, part, named, honest, here):
        folder = hostile(honest, here, part, named)
        for command in (*LOOKING, *WORKING):
            target = [] if command == ["runs", "list"] else [folder.name]
            print(command, call(*command, *target))
        print(call("embed", folder.name, here / "pictures"))
        (folder / "result.json").unlink()  # and once more as one that is not tested
        (folder / "test.parquet").unlink()
        print(call("test", folder.name))
        assert not (here / "executed").exists()
        assert not (here / "imported").exists()
        assert "planted" not in sys.modules

    @pytest.mark.parametrize("named", [POPEN, PLANT], ids=["popen", "planted"])
    def test_python_refuses_it_too(self, part, named, honest, here):
        run = Run(hostile(honest, here, part, named))
        with pytest.raises(NearkinError, match=rf"{named['name']}.*NEARKIN_TRUST"):
            nearkin.train(run.spec)
        with pytest.raises(NearkinError, match=rf"{named['name']}.*NEARKIN_TRUST"):
            nearkin.reproduce(run)
        if part in ("backbone", "head"):
            with pytest.raises(NearkinError, match=rf"{named['name']}.*NEARKIN_TRUST"):
                nearkin.load(run)
        assert not list(here.glob("executed")) + list(here.glob("imported"))


class TestConsent:
    def test_what_is_refused_names_the_module_and_the_switch(self, honest, here):
        folder = hostile(honest, here, "backbone", {"name": "planted.Net"})
        said = call("embed", folder.name, here / "pictures")
        assert "backbone 'planted.Net'" in said
        assert "the module planted" in said
        assert "--trust" in in_flags(said)
        assert "NEARKIN_TRUST=1" in said

    def test_the_switch(self, honest, here, monkeypatch):
        folder = hostile(honest, here, "backbone", {"name": "planted.Net"})
        monkeypatch.setenv(consent.VARIABLE, "0")
        assert "1 image" in call("embed", folder.name, here / "pictures", "--trust")
        monkeypatch.setenv(consent.VARIABLE, "1")
        assert "1 image" in call("embed", folder.name, here / "pictures")
        assert (here / "imported").exists()

    def test_in_python(self, honest, here):
        run = Run(hostile(honest, here, "backbone", {"name": "planted.Net"}))
        with pytest.raises(NearkinError, match="trust=True"):
            nearkin.load(run)
        assert nearkin.load(run, trust=True).dim == 16

    @pytest.mark.parametrize("part", ["protocol", "loss", "sampler", "data", "miner", "select"])
    def test_embedding_needs_the_network_alone(self, part, honest, here):
        folder = hostile(honest, here, part, {"name": "planted.Part"})
        assert "1 image" in call("embed", folder.name, here / "pictures")
        assert nearkin.load(folder).dim == 16

    def test_a_test_needs_no_loss(self, honest, here):
        folder = hostile(honest, here, "loss", {"name": "planted.Part"})
        for file in ("result.json", "test.parquet", "embeddings.npz"):
            (folder / file).unlink()
        assert nearkin.test(folder)["recall@1"] == honest.metrics()["recall@1"]
        assert not (here / "imported").exists()

    def test_ones_own_words_are_consent(self, tiny, here):
        run = nearkin.train(tiny | {"loss": "planted.Part", "loss.weight": 2.0, "epochs": 1}, runs=here / "runs")
        assert nearkin.reproduce(run).same_bits

    def test_so_is_a_file_that_is_named(self, tiny, here):
        (here / "run.yaml").write_text(yaml.safe_dump(tiny | {"loss": {"name": "planted.Part", "weight": 2.0}}))
        assert "recall@1" in call("train", "run.yaml", "epochs=1", "--no-baseline")

    def test_a_study_passes_it_on_to_its_workers(self, tiny, here):
        study = {"base": tiny | {"epochs": 1}, "axes": {"loss": ["planted.Part", "triplet"]}, "baselines": "none"}
        (here / "mine.yaml").write_text(yaml.safe_dump(study))
        said = call("study", "mine.yaml")
        assert "failed" not in said, said
        assert "planted.Part" in said

    def test_a_name_in_another_form_is_no_way_round(self, honest, here):
        spec = stored_spec(Run(honest.path).stored | {"model": {"backbone": b"planted.Net"}})
        with pytest.raises(NearkinError, match="NEARKIN_TRUST"):
            nearkin.runs.embed.rebuild(spec)
        with pytest.raises(NearkinError, match="NEARKIN_TRUST"):
            make_spec(spec, {"dim": 8})


class TestForms:
    @pytest.mark.parametrize("part", [*PARTS, "backbone", "head"])
    def test_a_command_is_no_part(self, part, tmp_path, here):
        words = {part: POPEN} if part in PARTS else {"model": {part: POPEN["name"]}}
        (here / "run.yaml").write_text(yaml.safe_dump(words))
        (here / "study.yaml").write_text(yaml.safe_dump({"base": words}))
        for command in (["train", "run.yaml"], ["study", "study.yaml", "--dry-run"]):
            said = call(*command)
            assert "subprocess.Popen" in said
            assert "it must be" in said
        assert not (here / "executed").exists()

    @pytest.mark.parametrize("path", ["os.abort", "os.getcwd", "os._exit", "antigravity.webbrowser", "pdb.set_trace"])
    def test_functions_of_python_make_no_network(self, path):
        with pytest.raises(NearkinError, match="it must be"):
            make_spec({"backbone": path})

    @pytest.mark.parametrize("name", ["pickle._Unpickler", "nearkin.losses.Triplet", "http.cookiejar.LWPCookieJar"])
    def test_what_can_load_is_no_data_set(self, name):
        with pytest.raises(NearkinError, match="it must be"):
            make_spec({"dataset": name})

    @pytest.mark.parametrize(
        "words", [{"loss": "planted.Part", "loss.wait": 2}, {"loss": "planted.Part", "loss.weight": "much"}]
    )
    def test_parameters_are_checked(self, words, here):
        with pytest.raises(NearkinError, match=r"wait.*choices: weight|weight='much'.*number"):
            make_spec(words)

    def test_they_are_handed_over_as_written(self, here):
        assert make_spec({"loss": "planted.Part", "loss.weight": 2}).loss.params == {"weight": 2}
        assert isinstance(make_spec({"loss": "planted.Part", "loss.weight": 2}).loss.params["weight"], int)

    def test_timm_downloads_nothing(self):
        with pytest.raises(NearkinError, match="nothing is downloaded"):
            make_spec({"backbone": "timm/hf-hub:someone/something"})
