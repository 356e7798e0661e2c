"""Data: tables, adapters, cache, transforms and the embedded glyphs."""

from nearkin.data.build import load_table
from nearkin.data.glyphs import Glyphs
from nearkin.data.source import PixelSource
from nearkin.data.table import Augment, Table

__all__ = ["Augment", "Glyphs", "PixelSource", "Table", "load_table"]
