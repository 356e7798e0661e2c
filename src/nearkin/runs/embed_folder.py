"""A folder of images, embedded into a file that says of each image its class, and whether the run was trained on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nearkin.data import Table, load_table
from nearkin.data.classes import check_rule
from nearkin.data.folders import left_in
from nearkin.data.hashing import content_hashes
from nearkin.data.images import UnreadableImage, images_from, read_image
from nearkin.errors import NearkinError, and_more
from nearkin.progress import parallel
from nearkin.runs.embed import Embedder
from nearkin.runs.seen import contents, seen_by
from nearkin.runs.store import Run
from nearkin.storage import atomic, check_writable
from nearkin.units import counted


@dataclass(frozen=True)
class Saved:
    """What `embed_folder` wrote.

    Fields:
        images, dim: the shape of the embeddings.
        trained: how many of the images the run was trained on.
        skipped: path and reason of each image that was left out.
        notes: what was not read, why there are no labels, in words.
    """

    images: int
    dim: int
    trained: int
    skipped: list[tuple[str, str]]
    notes: list[str] = field(default_factory=list)


def embed_folder(
    run: Run,
    load: Callable[[], Embedder],
    images: Path,
    output: Path,
    *,
    skip: bool = False,
    classes_from: str | None = None,
) -> Saved:
    """Embed a folder into an .npz:

        embeddings  (N, D), L2-normalised
        paths       (N,)
        labels      (N,) names of classes, as `dataset=folder` reads them; absent where images lie in no class folder
        trained     (N,) bool: was the run trained on this image, or its epoch chosen by it? By content, whatever the
                    file is called
        run         its hash

    `nearkin evaluate` leaves out what the run was trained on.

    Parameters:
        run: whose model embeds.
        load: gives the embedder; called after everything else was checked.
        images: a folder, or one image.
        output: the .npz file.
        skip: leave unreadable images out instead of stopping at the first.
        classes_from: which folders are classes, as data.classes_from; None: as the run says, else as the folder tells.
    """
    check_rule(classes_from)
    if output.suffix != ".npz":
        raise NearkinError(f"output={output}: embeddings are written as .npz")
    paths = images_from(images)
    check_writable(output)
    skipped = unreadable(paths) if skip else []
    left_out = {path for path, _ in skipped}
    paths = [path for path in paths if str(path) not in left_out]
    rule = classes_from or run.stored.get("data", {}).get("classes_from")
    labels, notes = labels_of(Path(images).expanduser(), paths, rule)
    if labels is None and classes_from is not None:
        reason = notes[0].removeprefix("without labels: ") if notes else f"{images} is one image, no folder"
        raise NearkinError(f"classes_from={classes_from}: {reason}")
    trained = trained_on(run, paths)
    z = load().embed(paths)
    content = {"embeddings": z, "paths": np.array([str(path) for path in paths]), "run": np.array(run.hash)}
    if labels is not None:
        content["labels"] = labels
    if trained is None:
        notes.append(f"an older nearkin stored run {run.hash}: which of the images it was trained on is not known")
    else:
        content["trained"] = trained
    with atomic(output) as scratch:
        np.savez(scratch / output.name, **content)  # type: ignore[arg-type]
    return Saved(len(z), z.shape[1], 0 if trained is None else int(trained.sum()), skipped, notes)


def labels_of(images: Path, paths: Sequence[Path], rule: str | None) -> tuple[np.ndarray | None, list[str]]:
    """The class of each image (N,), and notes: what was not read, what is doubtful, why there are no labels (None)."""
    if not images.is_dir():
        return None, []
    left = [left] if (left := left_in(images)) else []
    try:
        table = load_table("folder", images, classes_from=rule)
    except NearkinError as error:
        return None, [f"without labels: {error}", *left]
    name_of = {str(path): table.classes[label] for path, label in zip(table.paths or (), table.labels, strict=True)}
    loose = [path.name for path in paths if str(path) not in name_of]
    if loose:
        number = f"{counted(len(loose), 'image')} of {len(paths):,}"
        return None, [f"without labels: {number} in no class folder ({and_more(loose, 3)})", *left]
    doubt = [table.tree.doubt] if table.tree is not None and table.tree.doubt else []
    return np.array([name_of[str(path)] for path in paths]), [*doubt, *left]


def trained_on(run: Run, paths: Sequence[Path]) -> np.ndarray | None:
    """(N,) bool: which images the run, or the weights that it started from, learned from or chose the epoch by; None:
    it is not known."""
    records = seen_by(str(run.path / "model.pt"))
    if not all("images" in record for record in records):
        return None
    table = Table(np.zeros(len(paths), np.int64), ("",), paths=tuple(paths), root=paths[0].parent)
    learnt = [record["images"].numpy() for record in records]
    return np.isin(contents(table, content_hashes(table)), np.concatenate([*learnt, np.empty(0, np.int64)]))


def unreadable(paths: Sequence[Path]) -> list[tuple[str, str]]:
    """Which of these images cannot be read, and why."""

    def reason(path: Path) -> str | None:
        try:
            read_image(path)
        except UnreadableImage as error:
            return error.reason
        return None

    return [(str(path), why) for path, why in zip(paths, parallel(reason, paths, "Opening images"), strict=True) if why]
