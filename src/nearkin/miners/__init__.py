"""Miners: `nearkin.miners.X(...)(embeddings, labels)` gives the third argument of a loss."""

from nearkin.miners.all import All
from nearkin.miners.base import Miner
from nearkin.miners.distance_weighted import DistanceWeighted
from nearkin.miners.hard import Hard, Softhard
from nearkin.miners.multi_similarity import MultiSimilarity
from nearkin.miners.random import Random
from nearkin.miners.semihard import Semihard

__all__ = ["All", "DistanceWeighted", "Hard", "Miner", "MultiSimilarity", "Random", "Semihard", "Softhard"]
