"""Protocols: which rows train, which validate and which are tested."""

from nearkin.protocols.base import SplitProtocol
from nearkin.protocols.cross import All, Cross
from nearkin.protocols.folds import MLRC, Folds, KFold
from nearkin.protocols.given import File, QueryGallery, write_split
from nearkin.protocols.halves import Few, FixedVal, Standard
from nearkin.protocols.split import Split, TestRows
from nearkin.protocols.within import Within

__all__ = [
    "MLRC",
    "All",
    "Cross",
    "Few",
    "File",
    "FixedVal",
    "Folds",
    "KFold",
    "QueryGallery",
    "Split",
    "SplitProtocol",
    "Standard",
    "TestRows",
    "Within",
    "write_split",
]
