"""Regularisers of an objective."""

from nearkin.regularisers.base import Regulariser
from nearkin.regularisers.mixup import Mix, Mixup
from nearkin.regularisers.norm import Norm
from nearkin.regularisers.rho import Rho

__all__ = ["Mix", "Mixup", "Norm", "Regulariser", "Rho"]
