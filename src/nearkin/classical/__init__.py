"""Metric learning before deep networks: distances (x-y)ᵀA(x-y) on feature vectors, learned by one solver.

Every class is a scikit-learn estimator: `LMNN().fit(X, y).transform(X)`. `MEMBERS` are those that learn a matrix.
"""

from nearkin.classical.constraints import draw_pairs, draw_triplets
from nearkin.classical.estimator import MetricLearner, PairLearner, TripletLearner
from nearkin.classical.kernels import KernelMap, KernelNeighbours
from nearkin.classical.lmnn import LMNN
from nearkin.classical.members import ITML, MCML, MMC, GeneralMetric, KwokTsang, SchultzJoachims
from nearkin.classical.pola import POLA
from nearkin.classical.solver import Solution, solve
from nearkin.classical.vectors import vectors

MEMBERS = (GeneralMetric, LMNN, MCML, POLA, SchultzJoachims, KwokTsang, ITML, MMC)

__all__ = [
    "ITML",
    "LMNN",
    "MCML",
    "MEMBERS",
    "MMC",
    "POLA",
    "GeneralMetric",
    "KernelMap",
    "KernelNeighbours",
    "KwokTsang",
    "MetricLearner",
    "PairLearner",
    "SchultzJoachims",
    "Solution",
    "TripletLearner",
    "draw_pairs",
    "draw_triplets",
    "solve",
    "vectors",
]
