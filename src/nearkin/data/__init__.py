"""Data: tables, adapters, cache, transforms and the embedded glyphs."""

from nearkin.data.build import load_table
from nearkin.data.cache import Decoded, cache_dir, data_hash, decoded
from nearkin.data.glyphs import Glyphs
from nearkin.data.images import images_from, read_image
from nearkin.data.source import PixelSource
from nearkin.data.table import Augment, Table

__all__ = [
    "Augment",
    "Decoded",
    "Glyphs",
    "PixelSource",
    "Table",
    "cache_dir",
    "data_hash",
    "decoded",
    "images_from",
    "load_table",
    "read_image",
]
