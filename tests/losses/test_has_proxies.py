"""One rule says whether a loss compares samples with class vectors: default sampler and kind of a row ask it."""

from types import SimpleNamespace

import pytest

from nearkin.comparison.method import kind_of
from nearkin.config.spec import make_spec
from nearkin.losses import Loss, ProxyLoss
from nearkin.registry import LOSSES
from nearkin.runs.defaults import resolve


class Declared(Loss):
    """It takes num_classes, but its author says what it compares."""

    has_proxies = True

    def __init__(self, num_classes: int):
        super().__init__()


class Boundaries(Loss):
    """It has a parameter per class, and compares samples."""

    def __init__(self, num_classes: int):
        super().__init__()


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(LOSSES, "_registered", dict(LOSSES._classes))
    for name, cls in (("declared", Declared), ("boundaries", Boundaries)):
        LOSSES.register(name)(cls)


@pytest.mark.usefixtures("registered")
def test_sampler_and_kind_agree():
    for name in LOSSES.names():
        sampler = resolve(make_spec({"loss": name})).sampler.name
        kind = kind_of(SimpleNamespace(untrained=False, settings={"loss.name": name}))
        assert (sampler == "random", kind == "classification") == (LOSSES[name].has_proxies,) * 2, name
    assert LOSSES["declared"].has_proxies
    assert not LOSSES["boundaries"].has_proxies
    assert ProxyLoss.has_proxies
