"""What weights have seen: the images and classes that they were learned from, so that no run is tested on them.

The model.pt of a run holds a list of records under `seen`: one of the run, unless it is untrained, and those of the
weights that it started from. The records stay with the file, wherever it is copied:

    run         the run's hash
    data        the name of its data set
    data_hash   of its data
    rows        (N,) the rows of its table that trained it, or chose its epoch
    images      (N,) the hashes of their contents, as whole numbers
    classes     the hashes of the names of their classes

The model.pt of an older run holds no records; while it lies in the folder of its run, they are read from split.json.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.data import Table
from nearkin.errors import NearkinError
from nearkin.models.weights import is_of_a_run, read
from nearkin.protocols import Split
from nearkin.runs.run import Run
from nearkin.storage import fingerprint

Records = tuple[dict[str, Any], ...]


def seen_by(weights: str | None) -> Records:
    """The records of a file of weights; none if it does not come from a run."""
    path = Path(weights).expanduser().absolute() if weights else None
    if path is None or not path.is_file() or path.suffix == ".safetensors":
        return ()
    return _seen_by(path, *fingerprint(path))


@lru_cache(maxsize=16)
def _seen_by(path: Path, size: int, modified: int, changed: int) -> Records:
    """The same, read again only if the file changes."""
    run = Run(path.parent)
    if path.name == "model.pt" and (run.path / "spec.yaml").exists():
        run.file("model.pt")
    state = read(path)
    if not is_of_a_run(state):
        return ()
    if "seen" in state:
        return tuple(state["seen"])
    if not (run.path / "spec.yaml").exists() or not (run.path / "split.json").exists():
        return ()
    head, split = run.head(), run.read_json("split.json")
    if head["spec"].get("train", {}).get("epochs") == 0:
        return ()
    rows = torch.tensor([*split["train"], *split["val"]])
    record = {"run": run.hash, "data": head["spec"]["data"]["name"], "data_hash": head.get("data_hash"), "rows": rows}
    return ({**record, "classes": []},)  # nothing is known about other data


def training_record(name: str, data_hash: str, table: Table, split: Split, of_images: np.ndarray) -> dict[str, Any]:
    """The record of what a run will learn from; its hash is added when it is stored. `of_images` are the content hashes
    of the table's images."""
    rows = np.concatenate([split.train, split.val])
    classes = sorted(hashed(table.classes[label]) for label in np.unique(table.labels[rows]))
    images = torch.from_numpy(of_images[rows])
    return {"data": name, "data_hash": data_hash, "rows": torch.from_numpy(rows), "images": images, "classes": classes}


def contents(table: Table, hashes: Sequence[str]) -> np.ndarray:
    """(N,) int64: a hash of the content of each image; a file that cannot be read gets a unique number. `hashes` are
    those of the files, if the table has files."""
    if table.images is not None:
        digests = [blake2b(image.tobytes(), digest_size=8).digest() for image in table.images]
    else:
        digests = [
            bytes.fromhex(digest[:16]) if digest != "missing" else blake2b(str(row).encode(), digest_size=8).digest()
            for row, digest in enumerate(hashes)
        ]
    return np.frombuffer(b"".join(digests), "<i8").copy()


def check_unseen(
    weights: str | None, seen: Records, own_record: dict[str, Any], table: Table, split: Split, of_images: np.ndarray
) -> None:
    """Refuse weights that were learned from images that this run tests, or from classes that it tests as unseen ones.

    Images are compared by their content, whatever the data set is called; of an older record by their row, where the
    data are the same. Classes are compared by name where the data set has the same name. Classes that this run trains
    on itself may be known (protocol=within).

    Parameters:
        weights: the file, for the message.
        seen: its records.
        own_record: the record of this run.
        table, split: this run's data.
        of_images: the contents of the table's images.
    """
    rows = split.test.images
    known = np.unique(table.labels[own_record["rows"].numpy()])
    unseen = np.setdiff1d(np.unique(table.labels[rows]), known)  # classes that the test takes to be new
    for record in seen:
        same = record["data_hash"] == own_record["data_hash"]
        learnt = record["rows"].numpy() if same else np.empty(0, np.int64)
        if "images" in record:
            learnt = np.flatnonzero(np.isin(of_images, record["images"].numpy()))
        images = int(np.isin(rows, learnt).sum())
        names = set(record["classes"]) if record["data"] == own_record["data"] else set()
        of_rows = np.isin(unseen, table.labels[learnt])
        classes = unseen[of_rows | np.array([hashed(table.classes[c]) in names for c in unseen], bool)]
        if images or len(classes):
            which = f" (such as {table.classes[classes[0]]!r})" if len(classes) else ""
            total = len(np.unique(table.labels[rows]))
            raise NearkinError(
                f"weights={weights}: run {record['run']} learned from {images} of the {len(rows)} images and "
                f"{len(classes)} of the {total} classes{which} that this run tests; use weights that have not seen "
                "them, or split the data as that run did"
            )


def hashed(name: str) -> str:
    """The name of a class in a record: comparable, but not readable."""
    return blake2b(name.encode(), digest_size=8).hexdigest()
