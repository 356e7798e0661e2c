"""Protocols: who trains, who validates, who is tested."""

from nearkin.protocols.split import FixedVal, LockedTest, Split, SplitProtocol, Standard, Within

__all__ = ["FixedVal", "LockedTest", "Split", "SplitProtocol", "Standard", "Within"]
