"""What charts are drawn with: colours, canvases of matplotlib, and names as both renderers take them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearkin.storage import atomic

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

INK, SOFT = "#1b1b1b", "#8a8a8a"
COLOURS = ("#1f6f8b", "#b3541e", "#4a7c3a", "#8b3a62", "#7a6a1f", "#4b4e9e", "#a33b3b", "#2f7f6f", "#6b6b6b", "#9a5fb0")
SERIES = len(COLOURS)  # then the colours begin again


def canvas(height: float, width: float = 10) -> tuple[Figure, Any]:
    """A figure of its own: no display, no global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def pixel_by_pixel(image: np.ndarray) -> Figure:
    """A figure that is a picture (H, W, 3) uint8 and has as many pixels."""
    from matplotlib.figure import Figure

    height, width = image.shape[:2]
    figure = Figure(figsize=(width / 100, height / 100), dpi=100)
    figure.figimage(image)
    return figure


def save(figure: Figure, path: Path | str, endings: Sequence[str] = (".png", ".svg")) -> list[Path]:
    """Write a figure as NAME.png and NAME.svg, whole or not at all."""
    path = Path(path)
    files = [path.with_name(f"{path.name}{ending}") for ending in endings]
    for file in files:
        with atomic(file) as scratch:
            figure.savefig(scratch / file.name)
    return files


def label(text: object) -> str:
    """A text as matplotlib shows it, letter by letter: without this, what stands between two $ is mathematics. Every
    text that somebody else may have written passes here."""
    return str(text).replace("$", r"\$")


def named(group: Any) -> Any:
    """What a legend calls a group: nothing where there is but one."""
    return "" if group is None else group


def named_axis(names: Sequence[Any]) -> dict[str, Any]:
    """Plotly's axis of names."""
    return {"type": "category", "categoryorder": "array", "categoryarray": texts(names)}


def escaped(text: Any) -> str:
    """Text for plotly, which reads a little HTML: escaped."""
    from markupsafe import escape

    return str(escape(str(text)))


def texts(values: Sequence[Any]) -> list[Any]:
    """Values for plotly: texts escaped, numbers as they are."""
    return [escaped(value) if isinstance(value, str) else value for value in values]


def shortened(name: Any, most: int = 23) -> str:
    """A name for a phone's axis."""
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"
