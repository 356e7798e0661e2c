"""Miners: `nearkin.miners.X(...)(embeddings, labels)` gives the pairs or triplets for the third argument of a loss.

Letters in the formulas: s_ij is the cosine similarity of samples i and j, d_ij the distance of their unit vectors; a is
an anchor, p a positive (another sample of its class; all of them are P_a), n a negative (a sample of another class; all
of them are N_a). B is the number of anchors; their positives and negatives are indices into the M references, which are
the batch itself unless a memory is used.

`as_indices` translates what a miner gives to the index tensors of pytorch-metric-learning.
"""

from nearkin.miners.all import All
from nearkin.miners.base import Miner, explain_modules
from nearkin.miners.distance_weighted import DistanceWeighted
from nearkin.miners.foreign import ForeignMiner, as_indices
from nearkin.miners.hard import Hard, HardFloor, Softhard
from nearkin.miners.multi_similarity import MultiSimilarity
from nearkin.miners.random import Random
from nearkin.miners.semihard import Semihard

__all__ = [
    "All",
    "DistanceWeighted",
    "ForeignMiner",
    "Hard",
    "HardFloor",
    "Miner",
    "MultiSimilarity",
    "Random",
    "Semihard",
    "Softhard",
    "as_indices",
]

explain_modules(__name__)  # nearkin.miners.random(...) names Random


def __dir__() -> list[str]:
    """For tab completion: the classes, not their modules."""
    return __all__
