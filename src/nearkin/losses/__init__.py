"""Losses: `nearkin.losses.X(...)(embeddings, labels[, tuples])`."""

from nearkin.losses.base import Loss, PairLoss, ProxyLoss, TripletLoss
from nearkin.losses.contrastive import Contrastive
from nearkin.losses.multi_similarity import MultiSimilarity
from nearkin.losses.proxy_anchor import ProxyAnchor
from nearkin.losses.triplet import Triplet

__all__ = ["Contrastive", "Loss", "MultiSimilarity", "PairLoss", "ProxyAnchor", "ProxyLoss", "Triplet", "TripletLoss"]
