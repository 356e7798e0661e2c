"""Building a folder of the cache image by image, so that a build that was stopped goes on where it stood.

    <folder>.part/pixels.bin    what is kept of each image, one after another
                  journal       a line of JSON per image: [number, height, width, bytes, CRC-32 of these], or [number,
                                reason] of an unreadable one

`pixels.bin` is written first and made durable; only then the journal says so. What the journal lists is therefore
there, after a kill and after a power cut; what it does not list is cut off and made again. In the end `index.npz` is
written and the whole folder renamed in one step, so that nothing half-written is ever used.
"""

import json
import os
import shutil
import zlib
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.data.images import UnreadableImage
from nearkin.errors import NearkinError
from nearkin.progress import parallel
from nearkin.storage import explained, move_into_place, sweep

COMMIT = 1 << 26  # bytes after which the journal is written
COMMIT_IMAGES = 4096  # and images
SKIP = "data.on_error=skip leaves unreadable images out, nearkin data verify lists them"

Made = tuple[bytes | memoryview, tuple[int, int]]  # what is kept of an image, its height and width


class Journal:
    """The images of an unfinished folder, in order.

    Parameters:
        part: the unfinished folder; it is made where it is not there.

    Fields:
        numbers: height, width, bytes and CRC-32 of each image, one after another; zeros of an unreadable one
        reasons: number of an unreadable image -> why
        total: bytes of `pixels.bin`
        durable: how many of the images the journal on the disk lists
    """

    def __init__(self, part: Path):
        self.part = part
        self.numbers = array("q")
        self.reasons: dict[int, str] = {}
        self.total = 0
        self._lines: list[str] = []  # of images that are not yet made durable
        self._since = 0  # their bytes
        part.mkdir(parents=True, exist_ok=True)
        good = self._read()
        self.durable = len(self)
        for name, size in (("pixels.bin", self.total), ("journal", good)):
            (part / name).touch()
            os.truncate(part / name, size)
        self._pixels = open(part / "pixels.bin", "ab")  # noqa: SIM115 open as long as the journal is
        self._journal = open(part / "journal", "ab")  # noqa: SIM115

    def __len__(self) -> int:
        return len(self.numbers) // 4

    def add(self, content: bytes | memoryview, shape: tuple[int, int]) -> None:
        """Append an image."""
        self._pixels.write(content)
        self._note([*shape, memoryview(content).nbytes, zlib.crc32(content)])

    def skip(self, reason: str) -> None:
        """Note that an image is unreadable."""
        self._note([reason])

    def commit(self) -> None:
        """Make durable what was added, then say so in the journal."""
        lines, self._lines, self._since = self._lines, [], 0  # first: a Ctrl-C in here must not write them twice
        self._pixels.flush()
        os.fsync(self._pixels.fileno())
        self._journal.write("".join(lines).encode())
        self._journal.flush()
        os.fsync(self._journal.fileno())
        self.durable += len(lines)

    def close(self) -> None:
        """Close the files. What the disk has no room for is lost without a word: the journal does not list it."""
        for file in (self._pixels, self._journal):
            with suppress(OSError):
                file.close()

    def _note(self, entry: list) -> None:
        self._lines.append(json.dumps([len(self), *entry]) + "\n")
        self._enter(entry)
        self._since += 0 if len(entry) == 1 else entry[2]
        if self._since >= COMMIT or len(self._lines) >= COMMIT_IMAGES:
            self.commit()

    def _enter(self, entry: list) -> None:
        if len(entry) == 1:
            self.reasons[len(self)] = entry[0]
            entry = [0, 0, 0, 0]
        self.numbers.extend(entry)
        self.total += entry[2]

    def _read(self) -> int:
        """Read the journal up to the first line that is torn or whose image is not there; how many bytes that is."""
        good = 0
        try:
            there = (self.part / "pixels.bin").stat().st_size
            with open(self.part / "journal", "rb") as lines:
                for line in lines:
                    entry: Any = json.loads(line) if line.endswith(b"\n") else None
                    if not _is_entry(entry) or entry[0] != len(self):
                        break
                    if len(entry) == 5 and self.total + entry[3] > there:
                        break
                    self._enter(entry[1:])
                    good += len(line)
        except (OSError, ValueError):  # absent, or damaged from here on
            pass
        return good


def build(
    folder: Path,
    make: Callable[[Path], Made],
    paths: Sequence[Path],
    title: str,
    *,
    on_error: str,
    needs: Callable[[], int],
) -> None:
    """Make a folder of the cache: `make(path)` of every image in `pixels.bin`, and `index.npz`.

    The caller holds the lock of the folder. Whatever stops it, a full disk too, the same call goes on from there.

    Parameters:
        folder: it appears whole, in one step.
        make: what is kept of an image, with its height and width; it may raise `UnreadableImage`.
        paths: the images, in the order of the folder.
        title: of the progress bar.
        on_error: `raise` stops at an unreadable image, `skip` notes it.
        needs: returns the number of bytes that will be needed; it is called for the message when the disk is full.
    """
    part = folder.with_name(f"{folder.name}.part")
    with explained(folder, needs):
        sweep(folder.parent, folder.name)
        journal = Journal(part)
        try:
            _add_all(journal, make, paths, title, on_error)
        finally:
            journal.close()
            if not journal.durable:
                shutil.rmtree(part, ignore_errors=True)
        _write_index(journal, [str(path) for path in paths])
        move_into_place(part, folder)
        (folder / "journal").unlink(missing_ok=True)


def _add_all(journal: Journal, make: Callable, paths: Sequence[Path], title: str, on_error: str) -> None:
    def attempt(path: Path) -> Made | UnreadableImage:
        try:
            return make(path)
        except UnreadableImage as error:
            return error

    if on_error == "raise":
        for row, reason in journal.reasons.items():  # an earlier build, which skipped, was stopped
            raise UnreadableImage(str(paths[row]), reason, SKIP)
    done = len(journal)
    title = f"{title} ({done:,} are there already)" if done else title
    try:
        for row, made in enumerate(parallel(attempt, paths[done:], title), start=done):
            if not isinstance(made, UnreadableImage):
                journal.add(*made)
            elif on_error == "raise":
                raise UnreadableImage(str(paths[row]), made.reason, SKIP)
            else:
                journal.skip(made.reason)
    except BaseException:  # Ctrl-C too: the next one goes on from here
        with suppress(OSError):  # it may be what failed
            journal.commit()
        raise
    journal.commit()


def _write_index(journal: Journal, paths: list[str]) -> None:
    numbers = np.array(journal.numbers, np.int64).reshape(-1, 4)
    rows = np.flatnonzero(numbers[:, 0])
    skipped = [(paths[row], reason) for row, reason in journal.reasons.items()]
    if not len(rows):
        shutil.rmtree(journal.part, ignore_errors=True)
        raise NearkinError(f"all {len(paths)} images are unreadable; the first, {skipped[0][0]}: {skipped[0][1]}")
    with open(journal.part / "index.npz", "wb") as file:
        reasons = np.array(json.dumps(skipped))
        sums = numbers[rows, 3].astype(np.uint32)
        np.savez(file, shapes=numbers[rows, :2], kept=rows, sizes=numbers[rows, 2], sums=sums, skipped=reasons)
        file.flush()
        os.fsync(file.fileno())


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, list):
        return False
    numbers = len(entry) == 5 and all(type(value) is int and value >= 0 for value in entry)
    return numbers or (len(entry) == 2 and type(entry[0]) is int and isinstance(entry[1], str))
