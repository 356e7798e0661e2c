"""How much room the images of a table take, and which form there is room for."""

import shutil
from pathlib import Path
from typing import Literal

import numpy as np

from nearkin.cache import cache_dir, cache_limit
from nearkin.data.forms import fitted_shapes
from nearkin.data.images import UnreadableImage, image_shape
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.progress import note
from nearkin.units import BYTES

PACKED_SHARE = 0.1  # of the decoded bytes; photographs of CUB at 256 px take 0.06
FREE_SHARE = 0.5  # of the free disk that images may take without being asked for
SAMPLE = 100  # images whose sizes tell how much room all of them will take
FORMS = ("auto", "decoded", "packed", "none")

Form = Literal["auto", "decoded", "packed", "none"]


def needed_for(table: Table, resize: int, keep: int) -> int:
    """How many bytes the decoded images take, about: as many as a sample says."""
    shapes = []
    paths = table.paths or ()
    for row in np.unique(np.linspace(0, len(paths) - 1, SAMPLE).astype(int)):
        try:
            shapes.append(image_shape(paths[row]))
        except UnreadableImage:
            continue
    bytes_per_image = fitted_shapes(np.array(shapes), resize, keep).prod(1).mean() * 3 if shapes else 0
    return int(bytes_per_image * len(paths))


def chosen(cache: str, needs: int, folder: Path) -> str:
    """The form that there is room for; a NearkinError where there is none for the form that was asked for.

    Parameters:
        cache: auto, decoded or packed.
        needs: the bytes that it takes; of auto, those of decoded.
        folder: where they go; what a stopped build has written there already counts as free.
    """
    place = next(above for above in folder.parents if above.is_dir())
    part = folder.with_name(f"{folder.name}.part") / "pixels.bin"
    free = shutil.disk_usage(place).free + (part.stat().st_size if part.is_file() else 0)
    room = f"{BYTES.text(free)} are free in {cache_dir()}"
    if cache != "auto":
        if needs > free:
            less = f"data.cache=packed takes about {BYTES.text(needs * PACKED_SHARE)}, " if cache == "decoded" else ""
            raise NearkinError(
                f"data.cache={cache}: about {BYTES.text(needs)} needed, {room} (another place: NEARKIN_CACHE=DIR); "
                f"{less}data.cache=none nothing"
            )
        return cache
    limit = cache_limit()
    within = limit is None or needs <= limit
    if within and needs <= free * FREE_SHARE:
        return "decoded"
    why = room if within else f"the cache may take {BYTES.text(limit or 0)} (NEARKIN_CACHE_LIMIT)"
    note(
        f"data.cache=none: decoded images would take about {BYTES.text(needs)}, {why}; all are decoded again and again"
    )
    return "none"
