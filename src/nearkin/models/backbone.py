"""What a backbone is: an image network without its classifier, cut into named stages.

    from nearkin.models import Backbone, InputRecord
    from nearkin.registry import BACKBONES

    @BACKBONES.register("my_net")
    class MyNet(Backbone):
        record = InputRecord(mean=(0.5,) * 3, std=(0.5,) * 3, size=64, resize=64, crop=64)
        features = 128
        stages = ("stem", "body")                   # by default the attributes of these names, in order
        def __init__(self): ...

A plain `nn.Module` from outside works too: `PlainBackbone` wraps it.

Shapes: B images, C channels, h x w the last map.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nearkin.config.identity import source_of
from nearkin.errors import NearkinError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class InputRecord:
    """How uint8 RGB pixels become the input that a backbone's weights were trained on, and the default image sizes.

    The input is (x · scale - mean) / std, in the network's own channel order. Every backbone carries one as `record`;
    `Model.front` applies `normalise`, and a run whose spec sets no size takes `size`, `resize` and `crop` from it.

    Parameters:
        mean: one number per channel, in the network's channel order, after scaling
        std: one number per channel, likewise
        scale: factor on the pixel values 0-255
        bgr: the network takes blue, green, red; `mean` and `std` are then in that order too
        size: side of the square test crop, in pixels
        resize: shorter side of the image before the crops, in pixels
        crop: side of the square training crop, in pixels
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    scale: float = 1 / 255
    bgr: bool = False
    size: int = 224
    resize: int = 256
    crop: int = 224

    def normalise(self, images: Tensor) -> Tensor:
        """RGB images (B, 3, H, W) uint8 -> the network's input (B, 3, H, W) float32, channels last in memory."""
        x = images.flip(1) if self.bgr else images  # (B, 3, H, W) uint8
        x = x.to(dtype=torch.float32, memory_format=torch.channels_last)
        mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (self.mean, self.std))
        return x.mul_(self.scale).sub_(mean).div_(std)  # (B, 3, H, W)


class Backbone(nn.Module):
    """An image network without its classifier, cut into named stages: the base class of every backbone.

    It maps a normalised image (B, 3, H, W) to the last feature map (B, C, h, w); pooling and head are the model's.
    A `Model` can freeze the stages up to any one of them (`cut=`). A subclass sets

        record      how pixels become its input, and at which sizes (`InputRecord`)
        features    C, the channels of the last map
        stages      the names of its stages in the order in which they run

    and by default has an attribute of each stage's name that holds its module. Where a stage is more than one module,
    override `stage_modules`; where they do not simply follow each other, `run_stage` too. `BACKBONES.register(name)`
    sets `name` and `version`. Random weights come from torch's global generator.

    Example:
        backbone = nearkin.models.create_backbone("convnet")
        maps = backbone(backbone.record.normalise(images))      # (B, 3, 32, 32) uint8 -> (B, 256, 2, 2)
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    record: InputRecord
    features: int
    stages: tuple[str, ...]

    def stage_modules(self, name: str) -> list[nn.Module]:
        """The modules of a stage in the order in which they run; freezing the stage freezes all of them."""
        return [getattr(self, name)]

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        """The output of the previous stage (of the normalisation for the first) -> the output of this stage."""
        for module in self.stage_modules(name):
            x = module(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Normalised images (B, 3, H, W) -> the last map (B, C, h, w): all stages one after another."""
        for name in self.stages:
            x = self.run_stage(name, x)
        return x  # (B, C, h, w)

    @classmethod
    def check_side(cls, side: int) -> None:
        """A NearkinError if the network cannot take square images of this side; asked before any data are read."""

    @property
    def network(self) -> nn.Module:
        """The module whose parameter names are those of a public checkpoint: weights are loaded into it."""
        return self

    @property
    def source(self) -> str | None:
        """The hash of its source, if it is from outside nearkin; else None."""
        return source_of(type(self))


class PlainBackbone(Backbone):
    """A network from outside as a backbone: any `nn.Module` that takes normalised images (B, 3, H, W).

    It gives maps (B, C, h, w) or vectors (B, C), which count as maps of one pixel. It has one stage, `trunk`; the cut
    is then none, trunk or all. If the network has a `record` that is an `InputRecord`, that is used, otherwise mean and
    standard deviation of ImageNet at 224 pixels. If it has a number `features`, it must be C; otherwise C is determined
    by one image of zeros, at the size of the record.

    Parameters:
        trunk: the network.
        name: what messages and caches call it: the import path.
        source: the hash of its source; None: that of the network's class.

    Example:
        backbone = PlainBackbone(nn.Conv2d(3, 64, 16, stride=16), "patches")        # backbone.features == 64
    """

    stages = ("trunk",)

    def __init__(self, trunk: nn.Module, name: str, source: str | None = None):
        super().__init__()
        self.name = name  # type: ignore[misc]  # here it is the instance's own
        self.trunk = trunk
        self._source = source
        record: Any = getattr(trunk, "record", None)
        features: Any = getattr(trunk, "features", None)
        self.record = record if isinstance(record, InputRecord) else InputRecord(mean=IMAGENET_MEAN, std=IMAGENET_STD)
        count = channels(self, name)
        self.features = features if is_count(features) else count
        check_features(self, name, count)

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        """Normalised images (B, 3, H, W) -> the last map (B, C, h, w), or (B, C, 1, 1)."""
        out = self.trunk(x)
        if isinstance(out, Tensor) and out.ndim == 2 and len(out) == len(x):
            return out[:, :, None, None]
        return checked(out, len(x), self.name, "(B, C, h, w) or (B, C)")

    @property
    def network(self) -> nn.Module:
        """The network itself: a checkpoint has its parameter names, without `trunk.` before them."""
        return self.trunk

    @property
    def source(self) -> str | None:
        """The hash of the source of the network, or of the function that made it."""
        return self._source or source_of(type(self.trunk))


def check_backbone(backbone: Backbone, name: str) -> None:
    """A NearkinError in one line if a backbone from outside lacks something or does not give what it declares."""
    record, stages = getattr(backbone, "record", None), getattr(backbone, "stages", None)
    if not isinstance(record, InputRecord):
        given = "no record" if record is None else f"a {type(record).__name__} as record"
        raise NearkinError(f"backbone {name!r} has {given}: set record = InputRecord(mean=..., std=..., size=...)")
    if not isinstance(stages, tuple | list) or not stages or not all(isinstance(stage, str) for stage in stages):
        given = "no stages" if stages is None else f"stages={stages!r}"
        raise NearkinError(f"backbone {name!r} has {given}: set stages = (...), the names of its stages in order")
    check_features(backbone, name, channels(backbone, name))


def check_features(backbone: Backbone, name: str, actual: int) -> None:
    """A NearkinError if `features` is not the actual number of channels."""
    features = getattr(backbone, "features", None)
    if not is_count(features) or features != actual:
        given = "no features" if features is None else f"features={features!r}"
        raise NearkinError(f"backbone {name!r} has {given}, but gives {actual} channels: set features = {actual}")


def is_count(value: Any) -> bool:
    """Is it a whole number?"""
    return isinstance(value, int) and not isinstance(value, bool)


def channels(backbone: Backbone, name: str) -> int:
    """C, from one image of zeros at the size of the record; a NearkinError if that fails or gives no map.

    Random numbers, modes, statistics and gradients stay as they were.
    """
    side = backbone.record.size
    device = next((p.device for p in backbone.parameters()), torch.device("cpu"))
    modes = [(module, module.training) for module in backbone.modules()]
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            image = torch.zeros(1, 3, side, side, dtype=torch.uint8, device=device)
            out = backbone.eval()(backbone.record.normalise(image))
    except NearkinError:
        raise
    except Exception as error:  # networks of others may raise anything
        raise NearkinError(
            f"backbone {name!r} fails on an image of {side} x {side} (the size in its record): {in_one_line(error)}"
        ) from error
    finally:
        for module, mode in modes:
            module.training = mode
    return checked(out, 1, name, "(B, C, h, w)").shape[1]


def checked(out: Any, batch: int, name: str, shapes: str) -> Tensor:
    """The output of a network for a batch, if it is a map (B, C, h, w)."""
    if isinstance(out, Tensor) and out.ndim == 4 and len(out) == batch:
        return out
    given = f"shape {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
    raise NearkinError(f"backbone {name!r} gives {given} for a batch of {batch}; a backbone gives a tensor {shapes}")


def in_one_line(error: Exception) -> str:
    """'ValueError: what it says', without line breaks."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def init_convolutions(network: nn.Module) -> None:
    """Initialise the weights of all convolutions of a network again and set their biases to 0, in place.

    The rule is that of He et al. 2015 in the fan-out form that ResNets use: it keeps the variance of the gradients
    through ReLUs. The numbers come from torch's global generator.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
