"""Every registered part refuses an argument of the wrong type in one line that names it."""

import inspect
from types import NoneType
from typing import Any, Literal

import numpy as np
import pytest
import torch

import nearkin
from nearkin.arguments import is_number, refusal
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES, METHODS, MINERS, REGULARISERS, SAMPLERS

HANDED = {
    "num_classes": 4,
    "dim": 8,
    "labels": np.arange(32) % 4,
    "batch": 8,
    "seed": 0,
    "part_features": 4,
    "node_dim": 2,
}
WRONG: dict[Any, tuple[Any, ...]] = {
    int: ("8", 8.0, True, None, [8], torch.tensor(8.0)),
    float: ("0.1", True, None, float("inf"), float("nan"), [0.1], torch.tensor(0.1)),
    bool: ("yes", 1, 0.0, None),
    str: (1, None),
}


def parameters():
    """Every parameter of plain type of every loss, miner, regulariser, method and sampler."""
    for registry in (LOSSES, MINERS, REGULARISERS, METHODS, SAMPLERS):
        for name in registry.names():
            for parameter in inspect.signature(registry[name], eval_str=True).parameters.values():
                if parameter.annotation in WRONG or isinstance(parameter.default, bool | int | float | str):
                    yield pytest.param(registry[name], parameter, id=f"{name}-{parameter.name}")


def build(cls, **settings):
    needed = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return cls(**{name: HANDED[name] for name in needed if name in HANDED} | settings)


@pytest.mark.parametrize(("cls", "parameter"), list(parameters()))
def test_a_wrong_type(cls, parameter):
    plain = [kind for kind in WRONG if kind is parameter.annotation]
    for value in WRONG[plain[0]] if plain else (object(),):
        with pytest.raises(NearkinError) as raised:
            build(cls, **{parameter.name: value})
        assert str(raised.value).startswith(f"{cls.__name__}: {parameter.name}=")
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("cls", "parameter"), list(parameters()))
def test_the_default_and_its_like_are_taken(cls, parameter):
    default = parameter.default
    if default is parameter.empty:
        default = HANDED[parameter.name]
    assert refusal(default, parameter.annotation) is None
    if parameter.annotation is int:
        assert refusal(np.int32(default), parameter.annotation) is None
    if parameter.annotation is float:
        assert refusal(np.float32(default), parameter.annotation) is None
        assert refusal(int(default), parameter.annotation) is None


def test_there_are_parameters_to_check():
    assert len(list(parameters())) > 80


def test_the_words():
    cases = {
        "Triplet: margin='0.1': must be a number, not str": lambda: nearkin.losses.Triplet(margin="0.1"),
        "ProxyAnchor: num_classes=8.0: must be a whole number, not float": lambda: nearkin.losses.ProxyAnchor(8.0, 32),
        "Triplet: margin=inf: must be a finite number": lambda: nearkin.losses.Triplet(margin=float("inf")),
    }
    for words, call in cases.items():
        with pytest.raises(NearkinError) as raised:
            call()
        assert str(raised.value) == words
    with pytest.raises(TypeError, match="num_classes"):  # Python says best what is missing
        nearkin.losses.ProxyAnchor()


@pytest.mark.parametrize(
    ("value", "annotation", "words"),
    [
        (None, int | None, None),
        ("3", int | None, "must be a whole number or None, not str"),
        ("mean", Literal["mean", "sum"], None),
        ("max", Literal["mean", "sum"], "choices: mean, sum"),
        (1, Literal[True, "auto"], "choices: True, auto"),
        ("3", list[int], None),  # not a plain type
        ("3", inspect.Parameter.empty, None),
        (3, float | str, None),
        (None, NoneType, None),
    ],
)
def test_unions_and_literals(value, annotation, words):
    assert refusal(value, annotation) == words


def test_what_is_a_number():
    assert all(map(is_number, (int, float, int | None, tuple[float, float] | None)))
    assert not any(map(is_number, (bool, str, int | bool, Literal[1, 2], Literal["a", True], Any, list[str])))


def test_the_signature_stays():
    """Settings, help and names of runs are read from it."""
    assert list(inspect.signature(nearkin.losses.ProxyAnchor).parameters)[:2] == ["num_classes", "dim"]
    assert "margin" in inspect.signature(nearkin.losses.Triplet).parameters
