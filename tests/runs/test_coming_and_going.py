"""Runs are trained, tested and removed while they are looked at: no good run is ever called damaged, and nothing ends
with a traceback."""

import threading

import pytest
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs.store import Store

TINY = {
    "dataset": "glyphs",
    "data.classes": 12,
    "data.per_class": 6,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 8,
    "sampler.per_class": 2,
    "epochs": 1,
    "train.batches_per_epoch": 1,
}
LOOKS = (
    ("runs", "list"),
    ("runs", "list", "--json"),
    ("compare", "STORE", "--by", "seed"),
    ("runs", "verify"),
    ("report", "STORE", "--no-map", "-o", "PAGE"),
)


@pytest.fixture
def busy(tmp_path):
    """A store with one run that stays, and others that come and go until the test ends."""
    runs = tmp_path / "runs"
    nearkin.train(TINY, runs=runs, seed=1000)
    stop, errors, count = threading.Event(), [], [0]

    def work():
        seed = 0
        try:
            while not stop.is_set():
                seed = seed % 3 + 1
                run = nearkin.train(TINY, runs=runs, seed=seed)
                nearkin.test(run, metrics=["nmi"])
                Store(runs).remove(run)
                Store(runs).purge()
                count[0] += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    yield runs, count
    stop.set()
    thread.join()
    assert not errors, errors


def test_no_good_run_is_called_damaged(busy, tmp_path):
    runs, count = busy
    looks = 0
    while looks < 20 or count[0] < 5:
        words = LOOKS[looks % len(LOOKS)]
        page = tmp_path / "page.html"
        named = {"STORE": str(runs), "PAGE": str(page)}
        done = CliRunner().invoke(app, [*(named.get(word, word) for word in words), "--runs", str(runs)])
        error = done.exception
        assert error is None or isinstance(error, NearkinError | SystemExit), (words, repr(error))
        told = done.output + str(error or "") + (page.read_text() if page.exists() else "")
        assert "damaged: " not in told, (words, done.output, error)
        assert done.exit_code == 0, (words, done.output, error)
        page.unlink(missing_ok=True)
        looks += 1
