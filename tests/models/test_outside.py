"""Networks from outside nearkin as backbones: plain modules behind an adapter, and what is refused, in one line."""

import importlib
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import nearkin
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.models import Backbone, FeatureSource, build_model, create_backbone
from nearkin.models.backbone import IMAGENET_MEAN, InputRecord
from nearkin.registry import BACKBONES
from nearkin.runs.defaults import record_of
from nearkin.runs.prepare import prepare

OPENING = """
import torch
from torch import nn
from nearkin.models import Backbone, InputRecord

RECORD = InputRecord(mean=(0.5,) * 3, std=(0.5,) * 3, size=32, resize=32, crop=32)
"""
PLAIN = """
class Net(nn.Module):
    record = RECORD
    features = 12

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.body = nn.Conv2d(8, 12, 3, 2, 1)

    def forward(self, x):
        return self.body(self.stem(x))
"""
VECTORS = PLAIN.replace("return self.body(self.stem(x))", "return self.body(self.stem(x)).mean((2, 3))")


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Write a module of one's own, as a user has it beside the script; its name."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # an edit within the same second is seen

    def write(code):
        (tmp_path / "own_nets.py").write_text(OPENING + textwrap.dedent(code))
        sys.modules.pop("own_nets", None)
        importlib.invalidate_caches()
        return "own_nets.Net"

    yield write
    sys.modules.pop("own_nets", None)


def images(count=4, side=32):
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def refused(call, *words):
    with pytest.raises(NearkinError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


# -- what works -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [PLAIN, VECTORS], ids=["maps", "vectors"])
@pytest.mark.parametrize("cut", ["none", "trunk", "all"])
def test_a_plain_network(outside, code, cut):
    model = build_model(backbone=outside(code), dim=5, cut=cut)
    model(images()).z.square().sum().backward()
    assert model(images()).z.shape == (4, 5)
    assert model.back(model.front(images())).z.shape == (4, 5)
    trained = {name.split(".")[0] for name, p in model.named_parameters() if p.grad is not None}
    assert trained == ({"backbone", "head"} if cut == "none" else {"head"})
    assert model.backbone.features == 12
    assert model.record.size == 32
    assert model.backbone.name == "own_nets.Net"
    assert [g["name"] for g in model.trainable_groups()] == (["backbone", "head"] if cut == "none" else ["head"])


def test_the_value_is_that_of_the_network(outside):
    torch.manual_seed(0)
    model = build_model(backbone=outside(PLAIN), head="none").eval()
    torch.manual_seed(0)
    net = importlib.import_module("own_nets").Net().eval()
    with torch.no_grad():
        wanted = net(net.record.normalise(images())).mean((2, 3))
        torch.testing.assert_close(model(images()).z, wanted)


def test_what_it_does_not_say_is_found(outside):
    backbone = create_backbone(outside(PLAIN.replace("features = 12", "").replace("record = RECORD", "")))
    assert backbone.features == 12
    assert (backbone.record.mean, backbone.record.size, backbone.record.crop) == (IMAGENET_MEAN, 224, 224)


def test_features_may_be_another_thing(outside):
    """torchvision's networks call their convolutions so."""
    code = PLAIN.replace("    features = 12\n", "").replace("self.stem", "self.features")
    assert create_backbone(outside(code)).features == 12


def test_features_and_record_may_be_set_when_it_is_built(outside):
    code = PLAIN.replace("    features = 12\n", "").replace("    record = RECORD\n", "")
    code = code.replace("super().__init__()", "super().__init__(); self.record = RECORD; self.features = 12")
    path = outside(code)
    assert create_backbone(path).record.size == 32
    assert record_of(make_spec({"dataset": "glyphs", "backbone": path}).model).size == 32


def test_a_function_that_makes_it(outside):
    path = outside(PLAIN + "def make():\n    return Net()\n").replace("Net", "make")
    assert build_model(backbone=path, dim=3)(images()).z.shape == (4, 3)


def test_it_may_be_registered(monkeypatch):
    monkeypatch.setattr(BACKBONES, "_registered", dict(BACKBONES._classes))

    @BACKBONES.register("tests_plain")
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 7, 8, 8)

        def forward(self, x):
            return self.conv(x)

    assert create_backbone("tests_plain").name == "tests_plain"
    assert build_model(backbone="tests_plain", dim=3)(images(side=64)).z.shape == (4, 3)


def test_the_try_out_leaves_no_trace(outside):
    """Neither in the random numbers, nor in statistics, modes and gradients."""
    path = outside(PLAIN.replace("self.stem(x)", "nn.functional.dropout(self.stem(x))"))
    torch.manual_seed(0)
    net = importlib.import_module("own_nets").Net()
    after = torch.rand(3)
    torch.manual_seed(0)
    backbone = create_backbone(path)
    assert torch.equal(torch.rand(3), after)
    for name, value in net.state_dict().items():
        assert torch.equal(value, backbone.network.state_dict()[name]), name
    assert all(module.training for module in backbone.modules())
    assert all(p.grad is None and p.requires_grad for p in backbone.parameters())


def test_weights_have_the_names_of_the_network_itself(outside, tmp_path):
    path = outside(PLAIN)
    net = importlib.import_module("own_nets").Net()
    torch.save(net.state_dict(), tmp_path / "net.pth")
    model = build_model(backbone=path, weights=str(tmp_path / "net.pth"), dim=3)
    assert torch.equal(model.backbone.network.body.weight, net.body.weight)
    refused(lambda: build_model(backbone=path, weights="imagenet"), "own_nets.Net")
    torch.save({"model": model.state_dict(), "objective": {}}, tmp_path / "model.pt")  # as a run stores it
    again = build_model(backbone=path, weights=str(tmp_path / "model.pt"), dim=3)
    assert torch.equal(again.backbone.network.body.weight, net.body.weight)


def test_a_network_without_parameters(outside, tmp_path):
    code = "class Net(nn.Module):\n    record = RECORD\n    def forward(self, x):\n        return x[:, :, ::8, ::8]\n"
    model = build_model(backbone=outside(code), dim=3, cut="trunk")
    assert model.backbone.features == 3
    assert FeatureSource(Pixels(), model, data_hash="x", cache=tmp_path).plain.shape == (4, 3, 4, 4)


# -- behind a cut ---------------------------------------------------------------------------------------------


class Pixels:
    """Four images, in two views each."""

    def __len__(self):
        return 4

    def test(self, indices):
        return images()[indices]

    def train(self, indices, generator, size=None):
        return images()[indices].flip(-1)


@pytest.mark.parametrize("cut", ["trunk", "all"])
def test_features_of_a_plain_network(outside, tmp_path, cut):
    def source(code):
        torch.manual_seed(0)
        model = build_model(backbone=outside(code), dim=5, cut=cut)
        return FeatureSource(Pixels(), model, data_hash="x", views=2, cache=tmp_path), model

    first, model = source(PLAIN)
    assert first.plain.shape == first.more.shape == ((4, 12, 8, 8) if cut == "trunk" else (4, 12))
    rows = np.arange(4)
    torch.testing.assert_close(first.test(rows), model.front(images()), rtol=2e-3, atol=2e-3)
    source(PLAIN)
    assert len(list(tmp_path.rglob("*.npy"))) == 2  # plain views and further ones
    edited, model = source(PLAIN.replace("return self.body(self.stem(x))", "return -self.body(self.stem(x))"))
    assert len(list(tmp_path.rglob("*.npy"))) == 4  # equal weights, another network
    torch.testing.assert_close(edited.test(rows), model.front(images()), rtol=2e-3, atol=2e-3)


STAGED = """
class Net(Backbone):
    record = RECORD
    features = 12
    stages = ("stem", "body")

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.body = nn.Conv2d(8, 12, 3, 2, 1)
"""


def test_a_backbone_by_its_import_path_has_features_too(outside, tmp_path):
    model = build_model(backbone=outside(STAGED), dim=5, cut="stem")
    assert model.backbone.name == "own_nets.Net"
    assert FeatureSource(Pixels(), model, data_hash="x", cache=tmp_path).plain.shape == (4, 8, 16, 16)


def test_the_features_of_our_own_keep_their_name(tmp_path):
    model = build_model(backbone="convnet", dim=5, cut="block3")
    assert model.backbone.source is None


# -- runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", ["none", "all", "trunk"])
def test_a_run(outside, tiny, tmp_path, cut):
    words = tiny | {"backbone": outside(VECTORS if cut == "none" else PLAIN), "cut": cut, "epochs": 1}
    run = nearkin.train(words, runs=tmp_path / "runs")
    assert run.done
    assert 0 < run.result["test"]["recall@1"] <= 1
    assert nearkin.load(run).embed(list(images().permute(0, 2, 3, 1).numpy())).shape == (4, 16)
    assert nearkin.train(words, runs=tmp_path / "runs").hash == run.hash
    edited = tiny | {"backbone": outside(PLAIN + "# edited\n"), "cut": cut, "epochs": 1}
    assert prepare(make_spec(edited)).hash != run.hash


def test_the_class_itself_counts(outside):
    path = outside(PLAIN)
    assert BACKBONES[path] is importlib.import_module("own_nets").Net


# -- what is refused ------------------------------------------------------------------------------------------

BODY = PLAIN.replace("features = 12", "features = {features}").replace(
    "return self.body(self.stem(x))", "x = self.body(self.stem(x))\n        return {given}"
)


def plain(given="x", features="12"):
    return BODY.format(given=given, features=features)


WRONG = {
    "features": (plain(features="64"), ["features=64", "12 channels", "features = 12"]),
    "features of vectors": (plain("x.mean((2, 3))", "3"), ["features=3", "12 channels"]),
    "a tuple": (plain("(x, x)"), ["gives a tuple", "(B, C, h, w) or (B, C)"]),
    "a dictionary": (plain("{'out': x}"), ["gives a dict"]),
    "tokens": (plain("x.flatten(2)"), ["(1, 12, 64)", "(B, C, h, w) or (B, C)"]),
    "one number": (plain("x.sum()"), ["shape ()"]),
    "no batch": (plain("x[0].mean((1, 2))"), ["shape (12,)"]),
    "several rows": (plain("x.flatten(2)[0].T"), ["(64, 12)"]),
    "fails": (plain("self.nothing(x)"), ["32 x 32", "AttributeError", "nothing"]),
    "fails in two lines": (plain("int('a\\nb')"), ["32 x 32", "ValueError"]),
    "fails when built": (PLAIN.replace("nn.Conv2d(8, 12, 3, 2, 1)", "1 / 0"), ["cannot be built", "ZeroDivisionError"]),
    "wants arguments": (PLAIN.replace("__init__(self)", "__init__(self, width)"), ["cannot be built", "width"]),
    "an object": (PLAIN + "Net = Net()\n", ["is a Net", "nn.Module"]),
    "a number": ("Net = 3\n", ["int", "nn.Module"]),
    "makes no network": ("def Net():\n    return 3\n", ["int", "nn.Module"]),
    "no forward": (PLAIN.replace("def forward", "def backward"), ["32 x 32", "forward"]),
    "no record": (STAGED.replace("record = RECORD", ""), ["no record", "InputRecord("]),
    "a record of another type": (STAGED.replace("record = RECORD", "record = {'size': 32}"), ["dict", "InputRecord("]),
    "no stages": (STAGED.replace('stages = ("stem", "body")', ""), ["no stages"]),
    "one word as stages": (STAGED.replace('("stem", "body")', '"stem"'), ["stages", "'stem'"]),
    "a stage that is not there": (STAGED.replace('"body")', '"head")'), ["head"]),
    "no features": (STAGED.replace("features = 12", ""), ["no features", "12"]),
    "features of a backbone": (STAGED.replace("features = 12", "features = 64"), ["features=64", "12 channels"]),
    "vectors of a backbone": (
        STAGED.replace("nn.Conv2d(8, 12, 3, 2, 1)", "nn.Sequential(nn.Conv2d(8, 12, 16), nn.Flatten())"),
        ["(1, 12)", "(B, C, h, w)"],
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_refused_in_one_line(outside, wrong, tiny):
    code, words = WRONG[wrong]
    path = outside(code)
    refused(lambda: create_backbone(path), "backbone 'own_nets.Net'", *words)
    refused(lambda: build_model(backbone=path, dim=5), *words)
    refused(lambda: prepare(make_spec(tiny | {"backbone": path})), *words)  # before any data are read


def test_a_network_for_another_size(outside):
    """Of one that says nothing of its input, the message says what was tried and how to tell."""
    code = """
    class Net(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Flatten(), nn.Linear(3 * 32 * 32, 8))
    """
    refused(lambda: create_backbone(outside(code)), "224 x 224", "record")
    told = code.replace("def __init__", "record = RECORD\n\n        def __init__")
    assert create_backbone(outside(told)).features == 8


def test_a_network_that_gives_another_thing_while_it_trains(outside):
    model = build_model(backbone=outside(plain("(x, x) if self.training else x")), dim=5)
    assert model.eval()(images()).z.shape == (4, 5)
    refused(lambda: model.train()(images()), "gives a tuple")


def test_backbones_of_our_own_are_not_tried(monkeypatch):
    def forward(self, x):
        raise AssertionError

    monkeypatch.setattr(nearkin.models.ConvNet, "forward", forward)
    assert isinstance(create_backbone("convnet"), Backbone)
    assert isinstance(record_of(make_spec({"dataset": "glyphs"}).model), InputRecord)


def test_nor_is_one_that_only_watches_a_network_of_our_own(monkeypatch):
    monkeypatch.setattr(BACKBONES, "_registered", dict(BACKBONES._classes))
    seen = []

    class Watched(nearkin.models.ConvNet):
        def run_stage(self, name, x):
            seen.append(name)
            return super().run_stage(name, x)

    class Wider(nearkin.models.ConvNet):
        def __init__(self):
            super().__init__()
            self.block4 = nn.Conv2d(128, 300, 3)

    for cls in (Watched, Wider):
        BACKBONES.register(f"tests_{cls.__name__}")(cls)
    create_backbone("tests_Watched")
    assert seen == []
    refused(lambda: create_backbone("tests_Wider"), "features=256", "300 channels")
