"""Losses: `nearkin.losses.X(...)(embeddings, labels[, tuples])`."""

from nearkin.losses.angular import Angular
from nearkin.losses.base import Loss, PairLoss, ProxyLoss, TripletLoss
from nearkin.losses.contrastive import Contrastive
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

__all__ = [
    "HIST", "Angular", "ArcFace", "Contrastive", "CosFace", "FastAP", "GeneralizedLifted", "Histogram",
    "LiftedSimilarity", "LiftedStructure", "LiftedWeighted", "Loss", "Margin", "MultiSimilarity", "NPair", "NTXent",
    "NormSoftmax", "PairLoss", "ProxyAnchor", "ProxyLoss", "ProxyNCA", "ProxyNCApp", "ProxyRepel", "Quadruplet",
    "SNRContrastive", "SNRTriplet", "SoftTriple", "Softmax", "Triplet", "TripletLoss",
]  # fmt: skip
