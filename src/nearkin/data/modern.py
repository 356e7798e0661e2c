"""AVIF and HEIC: what reads them here, and what to say where nothing does.

AVIF is read by Pillow 11.3 and newer, HEIC (the photographs of iPhones) by the package pillow-heif, an extra of
nearkin. Files count as images by their names on every machine, so that data have one hash; where their reader is
missing, they are refused, with their number.
"""

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import PIL
from PIL import features

from nearkin.errors import and_more
from nearkin.units import counted

KINDS = {".avif": "AVIF", ".heic": "HEIC", ".heif": "HEIC"}
AVIF = {b"avif", b"avis"}
HEIC = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}


def kind_of(data: bytes) -> str | None:
    """AVIF or HEIC, by the first bytes of a file; None: it is neither."""
    if data[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(data[:4], "big"), 256)
    brands = {data[8:12], *(data[start : start + 4] for start in range(16, end, 4))}
    return "AVIF" if brands & AVIF else "HEIC" if brands & HEIC else None


def lacking(kind: str) -> str | None:
    """Why files of this kind cannot be read here, and what helps; None: they can."""
    if kind == "AVIF" and not _pillow_reads_avif():
        return f"AVIF needs Pillow 11.3 or newer, this is {PIL.__version__}: pip install 'pillow>=11.3'"
    if kind == "HEIC" and not has_heif():
        return "HEIC needs the package pillow-heif, which is not installed: pip install 'nearkin[heic]'"
    return None


def unread_here(paths: Iterable[Path]) -> list[str]:
    """A sentence for each kind of file, by its name, that cannot be read here, with the number of files."""
    files: dict[str, list[str]] = {}
    for path in paths:
        if (kind := KINDS.get(path.suffix.lower())) is not None:
            files.setdefault(kind, []).append(path.name)
    reasons = {kind: reason for kind in files if (reason := lacking(kind)) is not None}
    return [
        f"{counted(len(files[kind]), f'{kind} file')} cannot be read ({and_more(files[kind], 3)}): {reason}"
        for kind, reason in reasons.items()
    ]


def ready(kind: str) -> None:
    """Have Pillow open files of this kind, for which nothing is lacking."""
    if kind == "HEIC":
        _register()


def has_heif() -> bool:
    """Is pillow-heif installed?"""
    return importlib.util.find_spec("pillow_heif") is not None


@cache
def _register() -> None:
    from pillow_heif import register_heif_opener

    register_heif_opener()


@cache
def _pillow_reads_avif() -> bool:
    return bool(features.check("avif"))
