"""Showing things: tables and charts that render themselves, for the terminal, pages, files and notebooks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nearkin.present.shown import Shown
from nearkin.present.table import Column, Table

if TYPE_CHECKING:
    from nearkin.present.chart import Chart, described
    from nearkin.present.drawing import canvas, label, pixel_by_pixel, save, shortened
    from nearkin.present.files import ENDINGS, check_ending, read, sentence
    from nearkin.present.forms import Bars, Dots, Lines, Points
    from nearkin.present.grids import Heatmap, Ranks
    from nearkin.present.pictures import coloured, framed, overlaid
    from nearkin.present.pivot import pivot
    from nearkin.present.sheets import Panels, Pictures
else:
    _LATER = {  # module -> its names, imported when they are first used: a table on a terminal needs none of them
        "chart": ("Chart", "described"),
        "drawing": ("canvas", "label", "pixel_by_pixel", "save", "shortened"),
        "files": ("ENDINGS", "check_ending", "read", "sentence"),
        "forms": ("Bars", "Dots", "Lines", "Points"),
        "grids": ("Heatmap", "Ranks"),
        "pictures": ("coloured", "framed", "overlaid"),
        "pivot": ("pivot",),
        "sheets": ("Panels", "Pictures"),
    }

    def __getattr__(name: str) -> Any:
        for module, names in _LATER.items():
            if name in names:
                globals().update({n: getattr(import_module(f"nearkin.present.{module}"), n) for n in names})
                return globals()[name]
        raise AttributeError(f"module 'nearkin.present' has no attribute {name!r}")


__all__ = [
    "ENDINGS",
    "Bars",
    "Chart",
    "Column",
    "Dots",
    "Heatmap",
    "Lines",
    "Panels",
    "Pictures",
    "Points",
    "Ranks",
    "Shown",
    "Table",
    "canvas",
    "check_ending",
    "coloured",
    "described",
    "framed",
    "label",
    "overlaid",
    "pivot",
    "pixel_by_pixel",
    "read",
    "save",
    "sentence",
    "shortened",
]
