"""Methods: what is built around a loss."""

from nearkin.methods.drml import DRML

__all__ = ["DRML"]
