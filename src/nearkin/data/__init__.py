"""Data: tables, adapters, cache, transforms and the embedded glyphs."""

from nearkin.data.build import load_table
from nearkin.data.cache import Decoded, cache_dir, data_hash, decoded
from nearkin.data.folders import CSV, Folder
from nearkin.data.glyphs import Glyphs
from nearkin.data.images import images_from, read_image
from nearkin.data.official import CUB, SOP, Cars196, InShop
from nearkin.data.source import PixelSource
from nearkin.data.table import Augment, Table
from nearkin.data.verify import Report, verify

__all__ = [
    "CSV",
    "CUB",
    "SOP",
    "Augment",
    "Cars196",
    "Decoded",
    "Folder",
    "Glyphs",
    "InShop",
    "PixelSource",
    "Report",
    "Table",
    "cache_dir",
    "data_hash",
    "decoded",
    "images_from",
    "load_table",
    "read_image",
    "verify",
]
