"""`data_hash`: one short name for what the data are."""

import json
import os
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from nearkin.cache import cache_dir
from nearkin.data.images import is_transparent
from nearkin.data.table import Table
from nearkin.progress import parallel
from nearkin.storage import atomic, fingerprint, with_sum, without_sum

FORMAT = 2  # of what is remembered; raise it when a file begins to have another hash; 2: transparent images
SAVED = 100_000  # new files after which their hashes are saved; then twice as many, and so on
Known = dict[str, list]  # path -> [size, mtime, ctime, content hash]


def data_hash(table: Table, contents: Sequence[str] | None = None) -> str:
    """The hash of a table: 16 hex digits.

    It covers each image's path below the root, class name, split and content, in order; not where the root lies. The
    hash of a file's content is remembered in the cache with the file's size and times, so that the second call reads no
    image. A file that cannot be read does not raise.

    Parameters:
        table: the table.
        contents: `content_hashes(table)`, where they are known already.
    """
    total = blake2b(digest_size=8)
    if table.images is not None:
        total.update(repr((table.images.shape, str(table.images.dtype))).encode())
        total.update(np.ascontiguousarray(table.images).data)
        contents = [""] * len(table)
    elif contents is None:
        contents = content_hashes(table)
    splits = table.split.tolist() if table.split is not None else [""] * len(table)
    for i, (label, split, content) in enumerate(zip(table.labels.tolist(), splits, contents, strict=True)):
        total.update(json.dumps([table.shown(i), table.classes[label], str(split), content]).encode())
    return total.hexdigest()


def content_hashes(table: Table) -> list[str]:
    """One hash per file of a table, of its content; "missing" where the file cannot be opened, which is left to
    `decoded` and `verify` to report. Equal files have equal hashes."""
    paths = [os.path.abspath(path) for path in table.paths or ()]
    name = blake2b(str(table.root).encode(), digest_size=8).hexdigest()
    memory = cache_dir() / "hashes" / f"{name}-v{FORMAT}.json"
    known = _remembered(memory)
    stats = {path: _fingerprint(path) for path in paths}
    new = [path for path, stat in stats.items() if stat is not None and known.get(path, [])[:3] != stat]
    if new:
        digests = parallel(_content, new, "Hashing images")
        save = SAVED
        try:
            for done, (path, content) in enumerate(zip(new, digests, strict=True), start=1):
                known.pop(path, None)  # what it was is not what it is
                if content:
                    known[path] = [*stats[path], content]  # type: ignore[misc]
                if done == save:  # a kill costs half at most, saving little
                    _remember(known, memory)
                    save *= 2
        finally:  # after Ctrl-C no file is read twice
            _remember(known, memory)
    return [known[path][3] if stats[path] is not None and path in known else "missing" for path in paths]


def _remember(known: Known, memory: Path) -> None:
    with atomic(memory) as scratch:
        (scratch / memory.name).write_text(json.dumps(with_sum({"files": known})))


def _remembered(memory: Path) -> Known:
    """What was remembered; nothing where it is absent or damaged. A file of an older nearkin has no sum."""
    try:
        content = without_sum(json.loads(memory.read_text()))
        known = content["files"] if content.keys() == {"files"} else content
        return known if all(_is_known(entry) for entry in known.values()) else {}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _is_known(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 4 and isinstance(entry[3], str)


def _fingerprint(path: str) -> list[int] | None:
    try:
        return list(fingerprint(path))
    except OSError:
        return None


def _content(path: str) -> str:
    """The hash of a file's content. That of a transparent image ends otherwise since these are laid on white: data with
    other pixels have another name, and opaque images keep theirs. Its beginning, by which runs know what they learned
    from (runs/seen.py), is as it was."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return ""
    digest = blake2b(data, digest_size=16).hexdigest()
    return (
        digest[:16] + blake2b(data, digest_size=8, person=b"on white").hexdigest() if is_transparent(data) else digest
    )
