"""What the adapters share: finding their files, reading their lists, and saying what is wrong with them."""

from pathlib import Path

from nearkin.errors import NearkinError

SPLITS = ("train", "val", "test", "query", "gallery")


def rooted(name: str, root: Path | None, kind: str = "DIR") -> Path:
    """The root of a data set, which must be given and exist."""
    if root is None:
        raise NearkinError(f"dataset={name} needs root={kind}")
    root = Path(root).expanduser()
    if not root.exists():
        raise NearkinError(f"root={root} does not exist; dataset={name} needs root={kind}")
    return root


def home(name: str, root: Path | None, marker: str, inner: str) -> Path:
    """The folder that holds the file `marker`: the root itself, or its folder `inner`, as archives unpack."""
    root = rooted(name, root)
    for folder in (root, root / inner):
        if (folder / marker).is_file():
            return folder
    raise NearkinError(f"root={root} is not the official layout of {name}: {marker} is missing")


def needed(name: str, path: Path) -> Path:
    if not path.exists():
        raise NearkinError(f"root={path.parent} is not the official layout of {name}: {path.name} is missing")
    return path


def rows(path: Path, fields: int, *, skip: int = 0) -> list[list[str]]:
    """Lines of so many words, after `skip` lines of header; the last word may hold spaces."""
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
    if not word.isdigit() or not low <= int(word) <= high:
        raise NearkinError(f"{path}: class {word!r} is not a number from {low} to {high}")
    return int(word)
