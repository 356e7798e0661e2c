"""Names that somebody else gave, a class `$_$x` or a column `$\\frac`, in every figure: shown letter by letter."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from nearkin.analysis import (
    activation_figures,
    corruptions_figures,
    properties_figures,
    saliency_figures,
    similarity_figures,
    spectrum_figures,
    weights_figure,
)
from nearkin.analysis._agreement import Aggregate
from nearkin.analysis._corrupt import CORRUPTIONS
from nearkin.comparison.figures import critical_difference, label
from nearkin.comparison.tournament import Standing
from nearkin.statistics.ranks import tournament

NAME = r"$_$x $\frac$"  # mathtext that cannot be parsed


def activation():
    maps, images = np.random.default_rng(0).random((2, 3, 4, 4)), np.zeros((2, 8, 8, 3), np.uint8)
    seen = SimpleNamespace(
        name=NAME,
        pixels=images,
        maps=maps,
        channels=np.zeros((2, 3), int),
        regions=maps[:1, :2],
        cosine=np.ones(1),
        pair_pixels=images[None],
    )
    return SimpleNamespace(seen=[seen], image_rows=np.arange(2), pairs=np.array([[0, 1]]), classes={0: NAME, 1: NAME})


def saliency():
    cells = {(0, 0): Aggregate(0.5)}
    return SimpleNamespace(
        groups=[SimpleNamespace(name=NAME)],
        places=[[0]],
        maps=np.zeros((1, 2, 4, 4)),
        pixels=None,
        correlation=cells,
        divergence=cells,
    )


def spectra_table():
    header = ["method", "kind", "regulariser", "recall@1", "rho", "pi_ratio", "pi_intra", "pi_inter"]
    return header, [[NAME, "ranking", kind, 0.5, 1.0, 1.0, 1.0, 1.0] for kind in ("none", NAME)]


CELL = {"seeds": 0.9, "losses": 0.8, "difference": 0.1, "low": 0.0, "high": 0.2}
DROP = {"all": {"recall@1": {name: {"mean": 0.5} for name in ("clean", *CORRUPTIONS, "mean")}}}
SPECTRUM = (np.ones(3), np.ones(3))
RANKED = tournament(np.array([[0.1, 0.2], [0.1, 0.3]]))
FIGURES = {
    "activation, channels": lambda: activation_figures.channels(activation()),
    "activation, pairs": lambda: activation_figures.pairs(activation()),
    "saliency, panel": lambda: saliency_figures.panel(saliency()),
    "saliency, agreement": lambda: saliency_figures.agreement(saliency()),
    "corruptions": lambda: corruptions_figures.matrix({NAME: DROP}),
    "properties, bars": lambda: properties_figures.bars({NAME: {"nr_precision": 1.0, "by_class": 0.5}}),
    "properties, matrix": lambda: properties_figures.matrix({NAME: {"properties": {NAME: {"mean": 1.0}}}}, [NAME]),
    "similarity, levels": lambda: similarity_figures.levels({NAME: {"cka": CELL}}, {"cka": "CKA"}),
    "similarity, matrix": lambda: similarity_figures.matrix(np.ones((1, 1)), [NAME]),
    "spectrum, curves": lambda: spectrum_figures.curves({NAME: SPECTRUM, "other": SPECTRUM}),
    "spectrum, test": lambda: spectrum_figures.against_test(spectra_table()),
    "weights": lambda: weights_figure.multiples(
        [SimpleNamespace(name=NAME, weights={"positive": np.ones(3)})], np.arange(3)
    ),
    "ranks": lambda: critical_difference(Standing([NAME, "other"], ["a", "b"], RANKED, None, "seeds", 2, [])),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_name_is_no_mathematics(name, tmp_path):
    figure = FIGURES[name]()
    figure.savefig(tmp_path / "figure.png")
    texts = " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))
    assert r"\$" in texts


def test_a_label_is_shown_as_it_is():
    for text in (NAME, "$", "$a$", r"\$5", "plain", "1_2"):
        drawn = Figure().text(0, 0, label(text))
        shown, is_mathematics = drawn._preprocess_math(drawn.get_text())
        assert (shown, is_mathematics) == (text, False)
