"""The files of a run on their way between two stores that share no disk.

A `Packer` looks at a run's directory and packs what is new, also while another process trains the run; `unpack` lays it
down in another store. Every file arrives whole or not at all, and in an order that leaves, wherever it is cut off, a
directory from which the run goes on: weights before the checkpoint that names them, the checkpoint before final.json,
result.json after all that it speaks of.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nearkin.runs.log import LogReader
from nearkin.runs.run import Run
from nearkin.storage import open_to_append

LAST = ("checkpoint.pt", "final.json", "test.parquet", "result.json", "tests.json", "files.json")   # after all others
MARKS = ("checkpoint.pt", "final.json", "result.json")  # while they stay as they are, the other files fit them
STAYS = {"lock", "error.txt"}                           # means something where it lies, and nowhere else

Stamp = tuple[int, int]             # when a file was written, in ns, and its size


@dataclass
class Parcel:
    """What is new of a run.

    Parameters:
        files: path inside the run's directory -> content.
        names: all files that are there, also those that are not new.
        openings: what was noted about opened test splits (runs/openings.jsonl), each line once.
    """

    files: dict[str, bytes]
    names: set[str]
    openings: list[str]


class Packer:
    """Packs what is new in the directory of a run, each time since the last.

    Parameters:
        path: the directory, which another process may be writing; it need not exist.
        errors: pack error.txt too.
    """

    def __init__(self, path: Path, *, errors: bool = False):
        self.path = path
        self._stays = STAYS - {"error.txt"} if errors else STAYS
        self._known: dict[str, Stamp] = {}
        self._openings = LogReader(path.parent / "openings.jsonl")

    def pack(self) -> Parcel:
        """All files that are new or changed. They fit each other: if the run goes on while they are read, they are read
        again."""
        while True:
            before = self._marks()
            try:
                found = {name: stamp for name in self._names() if (stamp := _stamp(self.path / name)) is not None}
                new = [name for name, stamp in found.items() if self._known.get(name) != stamp]
                files = {name: (self.path / name).read_bytes() for name in new}
            except FileNotFoundError:                               # an epoch's weights gave way to better ones
                continue
            if before == self._marks():
                self._known = found
                return Parcel(files, set(found), [json.dumps(line) for line in self._openings.more()])

    def skip(self) -> None:
        """Take all that is there for known."""
        self._known = {name: stamp for name in self._names() if (stamp := _stamp(self.path / name)) is not None}
        self._openings.more()

    def _marks(self) -> list[Stamp | None]:
        return [_stamp(self.path / name) for name in MARKS]

    def _names(self) -> Iterator[str]:
        """Without scratch folders, whose names begin with a dot."""
        for file in sorted(self.path.rglob("*")):
            name = file.relative_to(self.path)
            if not any(part.startswith(".") for part in name.parts) and str(name) not in self._stays and file.is_file():
                yield name.as_posix()


def unpack(parcel: Parcel, path: Path) -> None:
    """Lay a parcel down in the directory of a run, and note in its store what was opened. States that the run has left
    behind go last."""
    if parcel.openings:                                             # noted before there is a result, as everywhere
        with open_to_append(path.parent / "openings.jsonl") as notes:
            notes.write("".join(f"{line}\n" for line in parcel.openings))
    for name in sorted(parcel.files, key=lambda name: LAST.index(name) if name in LAST else -1):
        with Run(path).put(name) as file:
            file.write_bytes(parcel.files[name])
    for file in [*path.glob("checkpoint.pt"), *path.glob("model-*.pt")]:
        if file.name not in parcel.names:
            file.unlink(missing_ok=True)


def _stamp(file: Path) -> Stamp | None:
    try:
        told = file.stat()
    except FileNotFoundError:
        return None
    return told.st_mtime_ns, told.st_size
