"""Analyses: what finished runs have learned. Numbers first, then a table, then figures."""

from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import TrainingSet, training_set
from nearkin.analysis.prototypes import Prototypes, prototypes, prototypes_of

__all__ = ["Analysis", "Prototypes", "TrainingSet", "prototypes", "prototypes_of", "training_set"]
