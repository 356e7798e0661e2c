"""Methods: what a batch's embeddings are trained by, built around a loss."""

from nearkin.methods.base import Method
from nearkin.methods.drml import DRML

__all__ = ["DRML", "Method"]
