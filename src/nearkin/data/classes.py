"""Which folder is a class: `data.classes_from`.

    leaf      the folder that an image lies in
    top       the folder below the root, or below the split; what lies deeper belongs to it
    depth:N   the N-th folder on the way down; an image in a shallower folder belongs to the folder it lies in

A folder is its names below the root, or below the split folder: ("Fruit", "Apple").
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from nearkin.errors import NearkinError
from nearkin.units import counted

Folder = tuple[str, ...]
CHOICES = "choices: leaf, top, depth:N with a whole number N of at least 1, or null"


def check_rule(rule: str | None) -> None:
    """Refuse what is no value of `data.classes_from`."""
    if rule not in (None, "leaf", "top") and not re.fullmatch(r"depth:0*[1-9]\d*", rule, re.ASCII):
        raise NearkinError(f"data.classes_from={rule}: {CHOICES}")


def decided(rule: str | None, parents: Sequence[Folder], root: Path) -> tuple[str, str]:
    """The rule that tells the classes, and a doubt about it in words, "" without one.

    It is the given rule; else leaf, where images lie in leaves only; else top, with the doubt. Where each top folder
    has one folder of images, both mean the same classes, and it is top. A NearkinError where depth:N is deeper than all
    images.

    Parameters:
        rule: leaf, top, depth:N, or None: nothing was said.
        parents: the folder that each image lies in.
        root: for messages.
    """
    leaves = set(parents)
    if rule is not None:
        deepest = max(map(len, leaves))
        if depth_of(rule, deepest) > deepest:
            raise NearkinError(
                f"data.classes_from={rule}: in root={root} images lie {counted(deepest, 'folder')} deep at most; "
                f"choices: leaf, top, depth:1 to depth:{deepest}"
            )
        return rule, ""
    if len(leaves) == len({folder[:1] for folder in leaves}):
        return "top", ""
    inside = {folder[:n]: folder for folder in sorted(leaves, reverse=True) for n in range(1, len(folder))}
    if not (both := sorted(leaves & inside.keys())):
        return "leaf", ""
    tops, all_leaves = (len(set(class_folders(choice, leaves))) for choice in ("top", "leaf"))
    return "top", (
        f"images lie in {'/'.join(both[0])} and in a folder inside it, {'/'.join(inside[both[0]])}: the top folders "
        f"are taken as {counted(tops, 'class', 'classes')}; data.classes_from=top says that this is meant, "
        f"data.classes_from=leaf makes {all_leaves:,}, data.classes_from=depth:N takes the N-th folder on the way down"
    )


def depth_of(rule: str, deepest: int) -> int:
    """How many folders down a class is at most, where images lie at most `deepest` folders down."""
    return {"top": 1, "leaf": deepest}.get(rule) or int(rule.removeprefix("depth:"))


def class_folders(rule: str, parents: Iterable[Folder]) -> list[Folder]:
    """The class folder of each image, from the folder that it lies in."""
    return [folder[: depth_of(rule, len(folder))] for folder in parents]


def class_names(folders: Iterable[Folder]) -> dict[Folder, str]:
    """The name of each class folder: its own, where no two are alike (`alike`); else, for all of them, the path below
    the root or the split: Fruit/Apple/Pink-Lady."""
    folders = set(folders)
    times = Counter(plain(folder[-1]) for folder in folders)
    unique = all(count == 1 for count in times.values())
    return {folder: folder[-1] if unique else "/".join(folder) for folder in folders}


def alike(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ in case, blanks or the coding of accents only: Apple, apple and "apple "."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups[plain(name)].append(name)
    return [group for group in groups.values() if len(group) > 1]


def plain(name: str) -> str:
    """A name without what people do not see: case, blanks around it and doubled ones, the coding of accents."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().replace("/", " / ").split())
