"""`nearkin.load` and `nearkin.embed`: a trained model on anyone's images."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from nearkin.config.spec import RunSpec
from nearkin.consent import consent, import_paths
from nearkin.data.forms import fitted
from nearkin.data.images import as_pixels, images_from
from nearkin.data.modern import unread_here
from nearkin.data.transforms import centre, shorter_side
from nearkin.engine.device import pick_device
from nearkin.engine.distributed import ranks
from nearkin.engine.embed import BATCH
from nearkin.errors import NearkinError
from nearkin.models import Model, build_model
from nearkin.models.fold import folded
from nearkin.numerics import unit
from nearkin.progress import track
from nearkin.runs.store import Run, Store

OneImage = str | Path | bytes | bytearray | memoryview | Image.Image | np.ndarray
Images = OneImage | Iterable[OneImage]


class Embedder:
    """A trained model for new images: `nearkin.load(RUN).embed(images)`."""

    def __init__(self, model: Model, *, size: int, resize: int, device: torch.device, keep: int | None = None):
        self.model = model.to(device).eval()
        self.size, self.resize, self.keep, self.device = size, resize, keep or resize, device

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return self.model.dim

    def embed(self, images: Images) -> np.ndarray:
        """L2-normalised embeddings, float32 (N, D), of images.

        Parameters:
            images: a folder; or one image or several, mixed freely: paths, bytes of image files, PIL images, arrays of
                uint8, (H, W, 3) in RGB or (H, W) in grey.
        """
        images = _listed(images)
        if not images:
            raise NearkinError("there are no images to embed")
        if unread := unread_here(Path(image) for image in images if isinstance(image, str | Path)):
            raise NearkinError(unread[0])
        network = self.model
        if len(images) > BATCH:  # folding takes as long as it saves on one batch
            probe = self._pixels(images[:1], 0)
            network = folded(network, lambda network: network(probe).z)
        starts = range(0, len(images), BATCH)
        with torch.no_grad():
            parts = [
                network(self._pixels(images[i : i + BATCH], i)).z.float().cpu()
                for i in track(starts, "Embedding", len(starts))
            ]
        return unit(torch.cat(parts)).numpy()  # (N, D)

    def _pixels(self, images: Sequence[Any], before: int) -> Tensor:
        """The network's input from images, before which stand others in the list."""
        decoded = (as_pixels(image, f"image {number}") for number, image in enumerate(images, before + 1))
        resized = (fitted(pixels, self.resize, self.keep) for pixels in decoded)  # as training kept its images
        pixels = np.stack([centre(shorter_side(image, self.resize), self.size) for image in resized])
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self.device)  # (B, 3, size, size)


def _listed(images: Any) -> list[Any]:
    """One image, a folder or many images as a list."""
    if isinstance(images, str | Path):
        return list(images_from(images))
    one_array = isinstance(images, np.ndarray) and (images.ndim == 2 or images.shape[2:] == (3,))
    if one_array or isinstance(images, bytes | bytearray | memoryview | Image.Image):
        return [images]
    if not isinstance(images, Iterable):
        raise NearkinError(f"images={images!r}: a path, bytes, a PIL image, an array, or a list of them")
    return list(images)


def load(run: str | Path | Run, *, runs: str | Path = "runs", device: str = "auto", trust: bool = False) -> Embedder:
    """The chosen model of a finished run, by path, hash or the beginning of its hash.

    Parameters:
        run: a run, or its path, its hash or the beginning of its hash.
        runs: the folder of the stored runs.
        device: where it computes: auto, cpu, cuda, ...
        trust: import the network where the run names it by an import path, which runs the code of that module.

    Example:
        nearkin.load("3f2a").embed("photos/")                       # (N, D)
    """
    stored = run if isinstance(run, Run) else Store(runs).find(str(run))
    if not stored.final:
        raise NearkinError(f"run {stored.hash} is not finished; start the same training again to finish it")
    if trust:
        consent(import_paths(stored.stored))
    spec = stored.spec
    model = rebuild(spec)
    load_model(model, stored)
    data = spec.data
    return Embedder(model, size=data.size or 0, resize=data.resize or 0, keep=data.keep, device=pick_device(device))


def embed(
    run: str | Path | Run, images: Images, *, runs: str | Path = "runs", device: str = "auto", trust: bool = False
) -> np.ndarray:
    """L2-normalised embeddings, float32 (N, D), of images under the chosen model of a finished run.

    Parameters:
        run: a run, or its path, its hash or the beginning of its hash.
        images: a folder; or one image or several, mixed freely: paths, bytes of image files, PIL images, arrays of
            uint8, (H, W, 3) in RGB or (H, W) in grey.
        runs: the folder of the stored runs.
        device: where it computes: auto, cpu, cuda, ...
        trust: import the network where the run names it by an import path, which runs the code of that module.

    Example:
        z = nearkin.embed("3f2a", ["a.jpg", PIL.Image.open("b.png"), pixels])       # (3, D)
    """
    return load(run, runs=runs, device=device, trust=trust).embed(images)


def rebuild(spec: RunSpec) -> Model:
    """The network of a spec without pretrained weights: those of the run will be loaded."""
    settings = spec.model.model_dump(exclude={"views", "weights"})
    return build_model(**settings)


def load_model(model: Model, run: Run) -> None:
    """Put the chosen weights of a run into a model; rank 0 reads them for all processes."""
    state = ranks().share(lambda: run.load("model.pt"))
    if state is None:
        raise run.damaged(f"model.pt is missing; `nearkin runs rm {run.hash}` and train again")
    try:
        model.load_state_dict(state["model"])
    except (KeyError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise NearkinError(f"{run.path}/model.pt does not fit the model of its spec: {reason}") from error
