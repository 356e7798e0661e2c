"""Regularisers: parts of an objective that change mined tuples, add a penalty, or mix samples."""

from nearkin.regularisers.base import Regulariser
from nearkin.regularisers.mixup import Mix, Mixup
from nearkin.regularisers.norm import Norm
from nearkin.regularisers.rho import Rho

__all__ = ["Mix", "Mixup", "Norm", "Regulariser", "Rho"]
