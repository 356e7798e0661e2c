"""Miners: `nearkin.miners.X(...)(embeddings, labels)` gives the third argument of a loss."""

from nearkin.miners.base import Miner
from nearkin.miners.multi_similarity import MultiSimilarity
from nearkin.miners.random import Random

__all__ = ["Miner", "MultiSimilarity", "Random"]
