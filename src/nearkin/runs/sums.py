"""files.json: size and SHA-256 of every file that a run's result depends on.

    {"files": {NAME: [BYTES, SHA-256]}, "coming": {NAME: [BYTES, SHA-256]}, "sha256": SHA-256}

It is written last: when a run begins, when it is final, when it is tested, after every further test. Before a listed
file is replaced, its new sum is entered under `coming`; until the next writing both are accepted, so that a run never
looks damaged to a reader, or after a kill, between the two. The last key is the sum of all bytes before it. Runs of an
older nearkin have no files.json: they are read, and reported as unverified.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from nearkin.storage import atomic

SUMS = "files.json"
LAST = b' "sha256": '  # the text before its own sum
BEGUN = ("spec.yaml", "split.json", "environment.json")
FINAL = ("log.jsonl", "model.pt", "validation.npz", "final.json")
TESTED = ("embeddings.npz", "test.parquet", "per_query.parquet", "curve.json", "result.json", "tests.json")

_known: dict[tuple[int, int, int, int], str] = {}  # device, inode, time and size of a file -> its SHA-256


class Sum(NamedTuple):
    """What a file was when it was stored."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Sums:
    """What files.json holds.

    Parameters:
        files: path inside the run's directory -> its sum.
        coming: the new sums of files that are about to be replaced.
    """

    files: dict[str, Sum] = field(default_factory=dict)
    coming: dict[str, Sum] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Sum, ...]:
        """The sums that a file may have; none if it is not listed."""
        return tuple(table[name] for table in (self.files, self.coming) if name in table)


def parse_sums(content: bytes) -> Sums:
    """What the bytes of a files.json hold; a ValueError if they were altered."""
    entries = json.loads(content)
    if entries["sha256"] != hashlib.sha256(content.rpartition(LAST)[0]).hexdigest():
        raise ValueError("its own sum differs")
    return Sums(*({name: Sum(*entry) for name, entry in entries[part].items()} for part in ("files", "coming")))


def write_sums(sums: Sums, folder: Path) -> None:
    """Write files.json into the directory of a run."""
    lines = []
    for part, table in (("files", sums.files), ("coming", sums.coming)):
        entries = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(table.items()))
        lines.append(f' "{part}": {{\n{entries}\n }},\n')
    body = "".join(["{\n", *lines]).encode()
    with atomic(folder / SUMS) as scratch:
        (scratch / SUMS).write_bytes(body + LAST + b'"' + hashlib.sha256(body).hexdigest().encode() + b'"\n}\n')


def resealed(folder: Path, before: Sums) -> Sums:
    """The sums of a run's files as they are now. A listed file keeps its sum unless it was replaced as announced, so
    that a file that was altered in another way is still recognised."""
    final = (folder / "final.json").exists()
    names = [*BEGUN, *((*FINAL, *TESTED, *curve_files(folder), *curve_files(folder, "trained")) if final else ())]
    files = dict(before.files)
    for name in names:
        if not (folder / name).is_file():
            continue
        if name not in files or (name in before.coming and sum_of(folder / name) == before.coming[name]):
            files[name] = sum_of(folder / name)
    return Sums(files)


def curve_files(folder: Path, weights: str = "epoch") -> list[str]:
    """The embeddings of the test images at every epoch, in the order of the epochs. Where weights are averaged, `epoch`
    are those of the average, `trained` those of the weights as trained."""
    return [f"curve/{file.name}" for file in sorted((folder / "curve").glob(f"{weights}-*.npy"))]


def sum_of(path: Path) -> Sum:
    """The sum of a file. It is computed once in a process, and again when size or time of the file have changed."""
    stat = path.stat()
    key = stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
    if key not in _known:
        with open(path, "rb") as file:
            _known[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return Sum(stat.st_size, _known[key])


def sum_of_bytes(content: bytes) -> Sum:
    """The sum of what was read from a file."""
    return Sum(len(content), hashlib.sha256(content).hexdigest())
