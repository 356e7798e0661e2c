"""`nearkin.load`: a trained model for new images."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from nearkin.config.spec import RunSpec
from nearkin.consent import consent, import_paths
from nearkin.data.forms import fitted
from nearkin.data.images import UnreadableImage, images_from, read_image
from nearkin.data.transforms import centre, shorter_side
from nearkin.engine.device import pick_device
from nearkin.engine.distributed import ranks
from nearkin.engine.embed import BATCH
from nearkin.errors import NearkinError
from nearkin.models import Model, build_model
from nearkin.models.fold import folded
from nearkin.numerics import unit
from nearkin.progress import parallel, track
from nearkin.runs.store import Run, Store
from nearkin.storage import atomic, check_writable


class Embedder:
    """A trained model for new images: `nearkin.load(RUN).embed(images)`."""

    def __init__(self, model: Model, *, size: int, resize: int, device: torch.device, keep: int | None = None):
        self.model = model.to(device).eval()
        self.size, self.resize, self.keep, self.device = size, resize, keep or resize, device

    @property
    def dim(self) -> int:
        """Dimensions of an embedding."""
        return self.model.dim

    def embed(self, images: str | Path | Iterable[str | Path | np.ndarray | Image.Image]) -> np.ndarray:
        """L2-normalised embeddings, float32 (N, D), of paths, a folder, PIL images or uint8 RGB arrays (H, W, 3)."""
        if isinstance(images, str | Path):
            images = images_from(Path(images))
        images = list(images)
        if not images:
            raise NearkinError("there are no images to embed")
        network = self.model
        if len(images) > BATCH:  # folding takes as long as it saves on one batch
            probe = self._pixels(images[:1])
            network = folded(network, lambda network: network(probe).z)
        starts = range(0, len(images), BATCH)
        with torch.no_grad():
            parts = [
                network(self._pixels(images[i : i + BATCH])).z.float().cpu()
                for i in track(starts, "Embedding", len(starts))
            ]
        return unit(torch.cat(parts)).numpy()  # (N, D)

    def _pixels(self, images: Sequence[str | Path | np.ndarray | Image.Image]) -> Tensor:
        resized = (
            fitted(_pixels(image), self.resize, self.keep) for image in images
        )  # as the cached images of training
        pixels = np.stack([centre(shorter_side(image, self.resize), self.size) for image in resized])
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self.device)  # (B, 3, size, size)


@dataclass(frozen=True)
class Saved:
    """What `embed_folder` wrote."""

    images: int
    dim: int
    skipped: list[tuple[str, str]]  # path, reason


def embed_folder(load: Callable[[], Embedder], images: Path, output: Path, *, skip: bool = False) -> Saved:
    """Embed a folder into an .npz of `embeddings`, `paths` and, where all images lie in folders below it, `labels`: the
    names of those folders.

    Parameters:
        load: gives the embedder; called after everything else was checked.
        images: a folder, or one image.
        output: the .npz file.
        skip: leave unreadable images out instead of stopping at the first.
    """
    if output.suffix != ".npz":
        raise NearkinError(f"-o {output}: embeddings are written as .npz")
    paths = images_from(images)
    check_writable(output)
    skipped = unreadable(paths) if skip else []
    left_out = {path for path, _ in skipped}
    paths = [path for path in paths if str(path) not in left_out]
    z = load().embed(paths)
    content: dict[str, np.ndarray] = {"embeddings": z, "paths": np.array([str(p) for p in paths])}
    folders = [path.relative_to(images).parts[:-1] for path in paths] if images.is_dir() else []
    if folders and all(folders):
        content["labels"] = np.array([parts[0] for parts in folders])
    with atomic(output) as scratch:
        np.savez(scratch / output.name, **content)  # type: ignore[arg-type]
    return Saved(len(z), z.shape[1], skipped)


def unreadable(paths: Sequence[Path]) -> list[tuple[str, str]]:
    """Which of these images cannot be read, and why."""

    def reason(path: Path) -> str | None:
        try:
            read_image(path)
        except UnreadableImage as error:
            return error.reason
        return None

    return [(str(path), why) for path, why in zip(paths, parallel(reason, paths, "Opening images"), strict=True) if why]


def _pixels(image: str | Path | np.ndarray | Image.Image) -> np.ndarray:
    if isinstance(image, str | Path):
        return read_image(Path(image))
    array = np.asarray(image.convert("RGB") if isinstance(image, Image.Image) else image)
    if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:
        raise NearkinError(f"an image must be uint8 RGB of shape (H, W, 3), not {array.dtype} of shape {array.shape}")
    return array


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


def rebuild(spec: RunSpec) -> Model:
    """The network of a spec without pretrained weights: those of the run will be loaded."""
    settings = spec.model.model_dump(exclude={"views", "weights"})
    return build_model(**settings)


def load_model(model: Model, run: Run) -> None:
    """Put the chosen weights of a run into a model; rank 0 reads them for all processes."""
    state = ranks().share(lambda: run.load("model.pt"))
    try:
        model.load_state_dict(state["model"])  # type: ignore[index]
    except (KeyError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise NearkinError(f"{run.path}/model.pt does not fit the model of its spec: {reason}") from error
