"""A store made by commit b58c777 is read, shown and resumed: same hashes, same results.

`fixtures/store_b58c777.tar.xz` holds two finished runs and one that was interrupted in step 6; the .json beside it
tells their words, the results of uninterrupted runs, and the hashes of 67 further specs.
"""

import json
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.config.spec import make_spec
from nearkin.runs.defaults import resolve
from nearkin.runs.store import Store
from nearkin.samplers import Balanced

FIXTURES = Path(__file__).parents[1] / "fixtures"
# exact duplicates no longer count as active positives; balanced batches draw their classes independently; N-pair on
# unit vectors pulls at no norms
RAISED = {"contrastive", "snr_contrastive", "balanced", "npair"}
TOLD = json.loads((FIXTURES / "store_b58c777.json").read_text())


@pytest.fixture
def runs(tmp_path):
    with tarfile.open(FIXTURES / "store_b58c777.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "runs"


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "lock"}


@pytest.mark.parametrize("told", TOLD["specs"], ids=lambda told: " ".join(f"{k}={v}" for k, v in told["words"].items()))
def test_the_hash_of_a_spec_stays(told, monkeypatch):
    """Except where a version rose: RAISED says why."""
    spec = resolve(make_spec(told["words"]))
    raised = [part for part in (spec.loss, spec.sampler) if part.name in RAISED and spec.train.epochs]
    if raised:
        assert spec.hash("d" * 12, "5" * 12) != told["hash"]
    for part in raised:
        monkeypatch.setattr(part.cls, "version", 1)
    assert spec.hash("d" * 12, "5" * 12) == told["hash"]


@pytest.mark.parametrize("name", ["finished", "prototypes"])
def test_a_finished_run_is_found_and_left_as_it_is(runs, name, monkeypatch):
    monkeypatch.setattr(Balanced, "version", 1)                     # as it was then
    told = TOLD["runs"][name]
    before = files(runs)
    run = nearkin.train(told["words"], runs=runs)
    assert run.hash == told["hash"]
    assert run.result == told["result"]
    assert files(runs) == before


def test_an_interrupted_run_goes_on(runs):
    told = TOLD["runs"]["interrupted"]
    stored = Store(runs).find(told["hash"])
    assert stored.begun
    assert not stored.done
    entries = []
    run = nearkin.train(told["words"], runs=runs, watch=entries.append)
    steps = [entry["step"] for entry in entries if "step" in entry]
    assert run.hash == told["hash"]
    assert steps[0] == 6                                            # its last checkpoint was made after step 5
    assert run.result["test"] == pytest.approx(told["result"]["test"], abs=0.05)    # another CPU, other last bits
    assert run.result["split"] == told["result"]["split"]


def test_it_is_listed_shown_embedded_and_analysed(runs, tmp_path):
    told = TOLD["runs"]
    listed = CliRunner().invoke(app, ["runs", "list", "--runs", str(runs), "--json"])
    assert {entry["hash"] for entry in json.loads(listed.output)} == {run["hash"] for run in told.values()}
    shown = CliRunner().invoke(app, ["runs", "show", told["finished"]["hash"], "--runs", str(runs)])
    assert shown.exit_code == 0
    assert "semihard" in shown.output
    analysed = ["analyse", "prototypes", told["prototypes"]["hash"], "--runs", str(runs), "-o", str(tmp_path), "--json"]
    assert json.loads(CliRunner().invoke(app, analysed).output)["classes"] > 1
    assert nearkin.load(told["finished"]["hash"], runs=runs).dim == 4
