"""nearkin: train and compare image-retrieval embeddings fairly.

nearkin.fit("my_images")                                           the best model for a folder of images
nearkin.train({"dataset": "glyphs", "loss": "multi_similarity"})   a run, stored under runs/
nearkin.test(run, metrics=["nmi", "recall@100"])                   more metrics of it, without training
nearkin.reproduce(run)                                             the same trained again, and compared
nearkin.embed(run, images)                                         its model on new images
nearkin.evaluate(embeddings, labels)                               retrieval metrics of any embeddings
nearkin.losses.MultiSimilarity()(embeddings, labels)               a loss in a loop of your own
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PLACES = {  # public name -> module, or module:attribute; imported when the name is first used: torch takes seconds
    "NearkinError": "nearkin.errors:NearkinError",
    "RunSpec": "nearkin.config.spec:RunSpec",
    "analyse": "nearkin.analysis.perform:analyse",
    "analysis": "nearkin.analysis",
    "compare": "nearkin.comparison.result:compare",
    "data": "nearkin.data",
    "embed": "nearkin.runs.embed:embed",
    "evaluate": "nearkin.evaluation.retrieval:evaluate",
    "find_runs": "nearkin.runs.listing:find_runs",
    "fit": "nearkin.fitting.fit:fit",
    "load": "nearkin.runs.embed:load",
    "losses": "nearkin.losses",
    "make_spec": "nearkin.config.spec:make_spec",
    "methods": "nearkin.methods",
    "metrics": "nearkin.evaluation.metrics",
    "miners": "nearkin.miners",
    "models": "nearkin.models",
    "protocols": "nearkin.protocols",
    "published": "nearkin.literature.shown:published",
    "regularisers": "nearkin.regularisers",
    "report": "nearkin.pages.report:report",
    "reproduce": "nearkin.runs.reproduce:reproduce",
    "samplers": "nearkin.samplers",
    "show_data": "nearkin.runs.show_data:show_data",
    "study": "nearkin.tuning.study:study",
    "test": "nearkin.runs.test:test",
    "train": "nearkin.runs.fit:train",
}

if TYPE_CHECKING:
    from nearkin import analysis, data, losses, methods, miners, models, protocols, regularisers, samplers
    from nearkin.analysis.perform import analyse
    from nearkin.comparison.result import compare
    from nearkin.config.spec import RunSpec, make_spec
    from nearkin.errors import NearkinError
    from nearkin.evaluation import metrics
    from nearkin.evaluation.retrieval import evaluate
    from nearkin.fitting.fit import fit
    from nearkin.literature.shown import published
    from nearkin.pages.report import report
    from nearkin.runs.embed import embed, load
    from nearkin.runs.fit import train
    from nearkin.runs.listing import find_runs
    from nearkin.runs.reproduce import reproduce
    from nearkin.runs.show_data import show_data
    from nearkin.runs.test import test
    from nearkin.tuning.study import study
else:

    def __getattr__(name: str) -> Any:
        """A public name, or a module of the package (`nearkin.pairs`), imported when it is first asked for."""
        module, _, attribute = _PLACES.get(name, f"nearkin.{name}").partition(":")
        if name not in _PLACES and (name.startswith("_") or find_spec(module) is None):
            raise AttributeError(f"module 'nearkin' has no attribute {name!r}")
        value = import_module(module)
        globals()[name] = getattr(value, attribute) if attribute else value
        return globals()[name]


__all__ = [
    "NearkinError",
    "RunSpec",
    "analyse",
    "analysis",
    "compare",
    "data",
    "embed",
    "evaluate",
    "find_runs",
    "fit",
    "load",
    "losses",
    "make_spec",
    "methods",
    "metrics",
    "miners",
    "models",
    "protocols",
    "published",
    "regularisers",
    "report",
    "reproduce",
    "samplers",
    "show_data",
    "study",
    "test",
    "train",
]


def __dir__() -> list[str]:
    """What a tab completes."""
    return __all__
