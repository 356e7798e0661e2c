"""What is wrong with a setting or a call is said in one line, before any data are read."""

import numpy as np
import pytest
import torch

import nearkin
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.runs.prepare import prepare

GIVEN_TWICE = [
    ({"dim": 16, "model.dim": 32}, "'model.dim' is given twice: dim=16 and model.dim=32"),
    ({"model.dim": 32, "dim": 16}, "'model.dim' is given twice: model.dim=32 and dim=16"),
    ({"loss": "margin", "loss.name": "triplet"}, "'loss.name' is given twice: loss=margin and loss.name=triplet"),
    ({"loss": {"name": "margin"}, "loss.name": "triplet"}, "'loss.name' is given twice"),
    ({"train": {"lr": 1}, "lr": 2}, "'train.lr' is given twice: train.lr=1 and lr=2"),
]


@pytest.mark.parametrize(("words", "said"), GIVEN_TWICE, ids=[said for _, said in GIVEN_TWICE])
def test_a_setting_under_two_names(words, said):
    with pytest.raises(NearkinError) as raised:
        make_spec(words)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_later_source_may_use_another_name():
    assert make_spec({"dim": 16, "model.dim": 16}).model.dim == 16  # no doubt what is meant
    assert make_spec({"dim": 16}, {"model.dim": 32}).model.dim == 32


@pytest.mark.parametrize("key", ["lr", "train.weight_decay", "train.clip", "train.eps", "train.groups.head.lr"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_an_infinite_number(key, value):
    with pytest.raises(NearkinError, match=r"train\..*=(inf|nan): must be a finite number"):
        make_spec({key: value})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"loss": "nearkin.losses"}, "loss 'nearkin.losses' is a module; it must be a nearkin.losses.Loss"),
        ({"sampler": "collections.Counter"}, "is the class Counter; it must be a nearkin.samplers.BatchSampler"),
        ({"miner": "json.JSONDecoder"}, "is the class JSONDecoder; it must be a nearkin.miners.Miner"),
    ],
    ids=str,
)
def test_an_import_path_to_something_else(words, said):
    with pytest.raises(NearkinError) as raised:
        make_spec(words)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"sampler": "gc", "sampler.per_class": 5}, "train.batch=32 is not divisible by sampler.per_class=5"),
        ({"sampler": "ddm", "sampler.big_batch": 16}, "sampler.big_batch=16 must be at least train.batch=32"),
        ({"sampler": "balanced", "sampler.per_class": 3}, "train.batch=32 is not divisible by sampler.per_class=3"),
        ({"sampler": "spc", "sampler.per_class": 0}, "sampler.per_class=0: must be at least 1"),
    ],
    ids=str,
)
def test_a_batch_that_no_data_could_fill(words, said):
    """The data are not there: they are not even looked for."""
    with pytest.raises(NearkinError, match=said):
        prepare(make_spec({"dataset": "cub", "root": "/nowhere", "loss": "triplet", "train.batch": 32, **words}))


@pytest.mark.parametrize("name", ["random", "gc", "spc"])
def test_the_module_of_a_sampler_names_its_class(name):
    with pytest.raises(NearkinError, match=rf"nearkin\.samplers\.{name} is a module; call nearkin\.samplers\."):
        getattr(nearkin.samplers, name)(np.zeros(8, int), 4, 0)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([0, 1, 1], "labels are list: a tensor of 3 class numbers is needed"),
        (np.array([0, 1, 1]), "labels are ndarray: a tensor"),
        (("a", "b", "b"), "labels are tuple: a tensor"),
        (torch.tensor([0, 1]), r"labels are a tensor of shape \(2,\): a tensor of 3 class numbers"),
    ],
)
def test_labels_of_a_memory(labels, said):
    memory = Memory(size=4, dim=2)
    with pytest.raises(NearkinError, match=said):
        memory.add(torch.ones(3, 2), labels, step=1)
    assert len(memory) == 0
