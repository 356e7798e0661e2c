"""Analyses: what finished runs have learned. Numbers, tables of them, and charts of the tables."""

from nearkin.analysis.activation import Activation
from nearkin.analysis.base import Analysis
from nearkin.analysis.centres import Centres
from nearkin.analysis.corruptions import Corruptions
from nearkin.analysis.embedded import TrainingSet, training_set
from nearkin.analysis.perform import Analysed, analyse, analyse_study
from nearkin.analysis.properties import Properties
from nearkin.analysis.prototypes import Prototypes, prototypes, prototypes_of
from nearkin.analysis.saliency import Saliency
from nearkin.analysis.similarity import Similarity
from nearkin.analysis.spectrum import Spectrum
from nearkin.analysis.weights import Weights

__all__ = [
    "Activation",
    "Analysed",
    "Analysis",
    "Centres",
    "Corruptions",
    "Properties",
    "Prototypes",
    "Saliency",
    "Similarity",
    "Spectrum",
    "TrainingSet",
    "Weights",
    "analyse",
    "analyse_study",
    "prototypes",
    "prototypes_of",
    "training_set",
]
