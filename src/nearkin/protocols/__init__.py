"""Protocols: who trains, who validates, who is tested."""

from nearkin.protocols.base import SplitProtocol
from nearkin.protocols.halves import FixedVal, Standard
from nearkin.protocols.split import LockedTest, Split
from nearkin.protocols.within import Within

__all__ = ["FixedVal", "LockedTest", "Split", "SplitProtocol", "Standard", "Within"]
