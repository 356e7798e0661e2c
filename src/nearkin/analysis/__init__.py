"""Analyses: what finished runs have learned. Numbers first, then a table, then figures."""

from nearkin.analysis.activation import Activation
from nearkin.analysis.base import Analysis
from nearkin.analysis.corruptions import Corruptions
from nearkin.analysis.embedded import TrainingSet, training_set
from nearkin.analysis.properties import Properties
from nearkin.analysis.prototypes import Prototypes, prototypes, prototypes_of
from nearkin.analysis.saliency import Saliency
from nearkin.analysis.similarity import Similarity
from nearkin.analysis.spectrum import Spectrum
from nearkin.analysis.weights import Weights

__all__ = [
    "Activation",
    "Analysis",
    "Corruptions",
    "Properties",
    "Prototypes",
    "Saliency",
    "Similarity",
    "Spectrum",
    "TrainingSet",
    "Weights",
    "prototypes",
    "prototypes_of",
    "training_set",
]
