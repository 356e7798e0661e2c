"""Shared by all tests: one thread, a cache of the session's own, small data."""

import functools
import os
import signal
from pathlib import Path

import pytest
import torch
from tiny import TINY

os.environ.setdefault("NEARKIN_FSYNC", "0")  # no test cuts the power
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that ignores it in the background hands that on
torch.set_num_threads(1)  # two test workers with two threads each would starve each other


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Nothing is read from, or left in, the user's cache; the workers of one session share theirs."""
    before = os.environ.get("NEARKIN_CACHE")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    os.environ["NEARKIN_CACHE"] = str(shared / "cache")
    yield
    if before is None:
        os.environ.pop("NEARKIN_CACHE", None)
    else:
        os.environ["NEARKIN_CACHE"] = before


@pytest.fixture(scope="session", autouse=True)
def _one_environment():
    """The commit and the versions are looked up once, not by four programs at each of a thousand short runs."""
    from nearkin.runs import environment

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_commit", "_version", "_cpu"):
            patch.setattr(environment, name, functools.cache(getattr(environment, name)))
        yield


@pytest.fixture(scope="session")
def cub_root():
    root = Path(os.environ.get("NEARKIN_CUB", Path(__file__).parents[2] / "shared" / "data" / "CUB_200_2011"))
    if not (root / "images.txt").exists():
        pytest.skip("the real CUB-200-2011 is not here; NEARKIN_CUB=DIR names it")
    return root


@pytest.fixture
def tiny():
    """Words of a run that takes a second."""
    return dict(TINY)
