"""Showing things: tables and charts that render themselves, for the terminal, pages, files and notebooks."""

from nearkin.present.chart import Chart, canvas, label, save
from nearkin.present.files import ENDINGS, check_ending, read, sentence
from nearkin.present.forms import Bars, Dots, Lines, Points
from nearkin.present.grids import Heatmap, Panels, Pictures, Ranks, described
from nearkin.present.pivot import pivot
from nearkin.present.shown import Shown
from nearkin.present.table import Column, Table

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
    "described",
    "label",
    "pivot",
    "read",
    "save",
    "sentence",
]
