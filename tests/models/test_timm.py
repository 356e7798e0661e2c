"""The adapter on a stand-in for timm: a convolutional network, a transformer of tokens, one with channels last."""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nearkin.errors import NearkinError
from nearkin.models import build_model

CONFIG = {"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6), "input_size": (3, 48, 48), "crop_pct": 0.75}


class FakeNet(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.num_features, self.pretrained_cfg = kind, 6, CONFIG
        self.num_prefix_tokens = 1
        self.conv = nn.Conv2d(3, 6, 16, 16)

    def forward_features(self, x):
        x = self.conv(x)  # (B, 6, h, w)
        if self.kind == "nhwc":
            return x.permute(0, 2, 3, 1)
        if self.kind == "tokens":
            tokens = x.flatten(2).transpose(1, 2)  # (B, hw, 6)
            return torch.cat([torch.full_like(tokens[:, :1], 1e6), tokens], 1)
        return x


@pytest.fixture
def timm(monkeypatch):
    def create_model(name, pretrained, num_classes):
        assert pretrained is False
        assert num_classes == 0
        if name not in ("map", "nhwc", "tokens"):
            raise RuntimeError(f"Unknown model ({name})")
        return FakeNet(name)

    fake = SimpleNamespace(create_model=create_model, list_models=lambda: ["map", "nhwc", "tokens"])
    monkeypatch.setitem(sys.modules, "timm", fake)


@pytest.mark.parametrize("kind", ["map", "nhwc", "tokens"])
def test_any_model(timm, kind):
    model = build_model(backbone=f"timm/{kind}", head="none").eval()
    images = torch.randint(0, 256, (2, 3, 48, 48), dtype=torch.uint8)
    with torch.no_grad():
        expected = model.backbone.trunk.conv(model.front(images)).mean((2, 3))
        torch.testing.assert_close(model(images).z, expected)
    assert (model.dim, model.backbone.name) == (6, f"timm/{kind}")
    record = model.record
    assert (record.mean, record.std) == (CONFIG["mean"], CONFIG["std"])
    assert (record.size, record.resize, record.crop) == (48, 64, 48)
    assert build_model(backbone=f"timm/{kind}", cut="all", dim=2).front(images).shape == (2, 6)


def test_weights_have_the_names_of_timm(timm, tmp_path):
    state = {**FakeNet("map").state_dict(), "head.weight": torch.zeros(3, 6)}
    torch.save(state, tmp_path / "net.pth")
    model = build_model(backbone="timm/map", weights=str(tmp_path / "net.pth"))
    assert torch.equal(model.backbone.trunk.conv.weight, state["conv.weight"])
    with pytest.raises(NearkinError, match="give the path of a local checkpoint"):
        build_model(backbone="timm/map", weights="imagenet")


def test_unknown_model(timm):
    with pytest.raises(NearkinError, match=r"tokenz.*similar: tokens"):
        build_model(backbone="timm/tokenz")


def test_timm_that_does_not_import(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(NearkinError, match=r"timm does not import.*pip install 'nearkin\[timm\]'"):
        build_model(backbone="timm/resnet18")
