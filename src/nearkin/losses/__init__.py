"""Losses: `nearkin.losses.X(...)(embeddings, labels[, tuples])` gives one number, as a scalar tensor.

Letters in the formulas: z_i is the raw embedding of sample i, e_i = z_i/‖z_i‖, s_ij = e_i·e_j the cosine similarity of
samples i and j, d_ij = ‖e_i - e_j‖ their distance. a is an anchor, p a positive (another sample of its class; all of
them are P_a), n a negative (a sample of another class; all of them are N_a). y_i is the label of sample i. Class c has
a learned vector w_c, ŵ_c = w_c/‖w_c‖. [x]₊ = max(0, x), and [c = y_i] is 1 if the equation holds, else 0.
"""

from nearkin.losses.angular import Angular
from nearkin.losses.base import Loss, PairLoss, ProxyLoss, TripletLoss
from nearkin.losses.contrastive import Contrastive
from nearkin.losses.foreign import ForeignLoss
from nearkin.losses.hist import HIST
from nearkin.losses.histogram import FastAP, Histogram
from nearkin.losses.lifted import GeneralizedLifted, LiftedSimilarity, LiftedStructure, LiftedWeighted
from nearkin.losses.margin import Margin
from nearkin.losses.multi_similarity import MultiSimilarity
from nearkin.losses.npair import NPair
from nearkin.losses.nt_xent import NTXent
from nearkin.losses.proxy_anchor import ProxyAnchor
from nearkin.losses.proxy_nca import ProxyNCA, ProxyNCApp
from nearkin.losses.proxy_repel import ProxyRepel
from nearkin.losses.quadruplet import Quadruplet
from nearkin.losses.snr import SNRContrastive, SNRTriplet
from nearkin.losses.soft_triple import SoftTriple
from nearkin.losses.softmax import ArcFace, CosFace, NormSoftmax, Softmax
from nearkin.losses.triplet import Triplet
from nearkin.miners.base import explain_modules

__all__ = [
    "HIST",
    "Angular",
    "ArcFace",
    "Contrastive",
    "CosFace",
    "FastAP",
    "ForeignLoss",
    "GeneralizedLifted",
    "Histogram",
    "LiftedSimilarity",
    "LiftedStructure",
    "LiftedWeighted",
    "Loss",
    "Margin",
    "MultiSimilarity",
    "NPair",
    "NTXent",
    "NormSoftmax",
    "PairLoss",
    "ProxyAnchor",
    "ProxyLoss",
    "ProxyNCA",
    "ProxyNCApp",
    "ProxyRepel",
    "Quadruplet",
    "SNRContrastive",
    "SNRTriplet",
    "SoftTriple",
    "Softmax",
    "Triplet",
    "TripletLoss",
]

explain_modules(__name__)  # nearkin.losses.margin(...) names Margin


def __dir__() -> list[str]:
    """What a tab completes: the classes, not the modules that they lie in."""
    return __all__
