"""Batch samplers."""

from nearkin.samplers.balanced import Balanced
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.random import Random

__all__ = ["Balanced", "BatchSampler", "Random"]
