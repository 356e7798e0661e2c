"""nearkin: train and compare image-retrieval embeddings fairly.

nearkin.train({"dataset": "glyphs", "loss": "multi_similarity"})   a run, stored under runs/
nearkin.test(run, metrics=["nmi", "recall@100"])                   more metrics of it, without training
nearkin.reproduce(run)                                             the same trained again, and compared
nearkin.embed(run, images)                                         its model on new images
nearkin.evaluate(embeddings, labels)                               retrieval metrics of any embeddings
nearkin.losses.MultiSimilarity()(embeddings, labels)               a loss in a loop of your own
"""

from nearkin import analysis, data, losses, methods, miners, models, protocols, regularisers, samplers
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError
from nearkin.evaluation import metrics
from nearkin.evaluation.retrieval import evaluate
from nearkin.runs.embed import embed, load
from nearkin.runs.fit import train
from nearkin.runs.reproduce import reproduce
from nearkin.runs.test import test

__version__ = "0.1.0"
__all__ = [
    "NearkinError",
    "RunSpec",
    "analysis",
    "data",
    "embed",
    "evaluate",
    "load",
    "losses",
    "make_spec",
    "methods",
    "metrics",
    "miners",
    "models",
    "protocols",
    "regularisers",
    "reproduce",
    "samplers",
    "test",
    "train",
]
