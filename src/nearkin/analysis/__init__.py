from nearkin.analysis.embedded import TrainingSet, training_set
from nearkin.analysis.prototypes import Prototypes, prototypes, prototypes_of, save_prototypes

__all__ = ["Prototypes", "TrainingSet", "prototypes", "prototypes_of", "save_prototypes", "training_set"]
