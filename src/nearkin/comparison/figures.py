"""Moved to present."""

from nearkin.present import label, save

__all__ = ["label", "save"]
