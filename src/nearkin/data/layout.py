"""What the data sets that read files share: finding the files, reading lists, saying what is wrong with them."""

from pathlib import Path

from nearkin.errors import NearkinError

SPLITS = ("train", "val", "test", "query", "gallery")


def rooted(name: str, root: Path | None, kind: str = "DIR") -> Path:
    """The root of the data set `name` as a path; a NearkinError when it is None or does not exist. `kind` stands in the
    message: DIR or FILE."""
    if root is None:
        raise NearkinError(f"dataset={name} needs root={kind}")
    root = Path(root).expanduser()
    if not root.exists():
        raise NearkinError(f"root={root} does not exist; dataset={name} needs root={kind}")
    return root


def home(name: str, root: Path | None, marker: str, inner: str) -> Path:
    """The folder that holds the file `marker`: the root itself, or its folder `inner`, into which the archive unpacks.
    A NearkinError when it is in neither."""
    root = rooted(name, root)
    for folder in (root, root / inner):
        if (folder / marker).is_file():
            return folder
    raise NearkinError(f"root={root} is not the official layout of {name}: {marker} is missing")


def needed(name: str, path: Path) -> Path:
    """The path, when it exists; else a NearkinError that says what the data set `name` misses."""
    if not path.exists():
        raise NearkinError(f"root={path.parent} is not the official layout of {name}: {path.name} is missing")
    return path


def rows(path: Path, fields: int, *, skip: int = 0) -> list[list[str]]:
    """The lines of a text file, each split into `fields` words, without the first `skip` lines and empty ones.

    The last word may hold spaces. A NearkinError names a line with too few words, or says that no line is left.
    """
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NearkinError(f"{path} cannot be read as text: {error}") from error
    for number, line in enumerate(lines[skip:], start=skip + 1):
        words = line.split(maxsplit=fields - 1)
        if not words:
            continue
        if len(words) != fields:
            raise NearkinError(f"{path}, line {number}: {len(words)} words, {fields} expected: {line.strip()[:80]!r}")
        found.append([word.strip() for word in words])
    if not found:
        raise NearkinError(f"{path} lists no image")
    return found


def whole_number(word: str, low: int, high: int, path: Path) -> int:
    """The number of a class from the file `path`; a NearkinError when it is not a number from `low` to `high`."""
    if not word.isdigit() or not low <= int(word) <= high:
        raise NearkinError(f"{path}: class {word!r} is not a number from {low} to {high}")
    return int(word)
