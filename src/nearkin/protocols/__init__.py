"""Protocols: who trains, who validates, who is tested."""

from nearkin.protocols.base import SplitProtocol
from nearkin.protocols.halves import FixedVal, Standard
from nearkin.protocols.split import Split, TestRows
from nearkin.protocols.within import Within

__all__ = ["FixedVal", "Split", "SplitProtocol", "Standard", "TestRows", "Within"]
