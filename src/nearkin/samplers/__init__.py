"""Batch samplers: `nearkin.samplers.X(labels, batch, seed).next()` gives the positions of the images of a batch."""

from nearkin.miners.base import explain_modules
from nearkin.samplers.balanced import Balanced
from nearkin.samplers.bank import BankSampler
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.covering import Covering
from nearkin.samplers.ddm import DDM
from nearkin.samplers.frd import FRD
from nearkin.samplers.gc import GC
from nearkin.samplers.hard_neighbours import HardNeighbours
from nearkin.samplers.offline import Offline
from nearkin.samplers.random import Random
from nearkin.samplers.spc import SPC, SPCR

__all__ = [
    "DDM",
    "FRD",
    "GC",
    "SPC",
    "SPCR",
    "Balanced",
    "BankSampler",
    "BatchSampler",
    "Covering",
    "HardNeighbours",
    "Offline",
    "Random",
]
explain_modules(__name__)  # nearkin.samplers.random(...) names Random
