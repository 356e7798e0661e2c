"""The tables of `Similarity` in words."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from nearkin.analysis.alike import jackknife
from nearkin.analysis.over_runs import OVER_CLASSES, few_seeds
from nearkin.analysis.similarity import EMBEDDING, MEASURES, defined
from nearkin.comparison.pages import Sheet
from nearkin.statistics.intervals import cut

if TYPE_CHECKING:
    from nearkin.analysis.similarity import Similarity

NOTES = (
    "seeds: pairs of runs of one method with two seeds; losses: pairs of runs of two trained methods, with two seeds, "
    "too, so that the kinds of pairs differ in the method alone; every method counts once, however many seeds it has",
    "over losses: t interval of each method's own difference, three methods at least (they share runs: it is rough)",
)


def sheets(similarity: "Similarity") -> dict[str, Sheet]:
    """Levels, and the methods at the embedding; of files every two of them."""
    if not similarity.of_runs:
        return {"pairs": _of_files(similarity)}
    header = ["level", "measure", "seeds", "losses", "difference", "95 % interval", "over losses"]
    rows = []
    for level, measures in similarity.summary["levels"].items():
        for measure, words in MEASURES.items():
            cell = measures[measure]
            over = cell["over_losses"] or {"low": None, "high": None}
            rows.append(
                [
                    level,
                    words,
                    _number(cell["seeds"]),
                    _number(cell["losses"]),
                    _number(cell["difference"]),
                    _span(cell["low"], cell["high"]),
                    _span(over["low"], over["high"]),
                ]
            )
    seeds = Counter(run["method"] for run in similarity.runs if run["kind"] != "untrained")
    notes = [f"{similarity.images:,} test images", *NOTES, OVER_CLASSES, *few_seeds(seeds.values()), *similarity.notes]
    made = {"levels": Sheet("Two seeds of one method against two methods", header, rows, 5, notes)}
    for measure, words in MEASURES.items():
        made[measure] = _by_method(similarity, measure, f"{words} at the embedding, mean over pairs of runs")
    return made


def _of_files(similarity: "Similarity") -> Sheet:
    """Every two files, with intervals over classes."""
    alike, rows = similarity.alike[EMBEDDING], []
    for i, first in enumerate(similarity.runs):
        for j, second in enumerate(similarity.runs[i + 1 :], start=i + 1):
            cells = []
            for measure in MEASURES:
                value = defined(float(getattr(alike, measure)[i, j]))
                cells += [_number(value), _share(value, getattr(alike, f"{measure}_left")[:, i, j])]
            rows.append([first["name"], second["name"], *cells])
    header = ["file", "against", *(text for words in MEASURES.values() for text in (words, f"95 % of {words}"))]
    notes = [f"{similarity.images:,} images", OVER_CLASSES, *similarity.notes]
    notes += ["* cut at the end of the range"] * any("*" in cell for row in rows for cell in row[2:])
    return Sheet("Files of embeddings of the same images", header, rows, 4, notes)


def _by_method(similarity: "Similarity", measure: str, title: str) -> Sheet:
    """Methods by methods, at the embedding."""
    matrix = getattr(similarity.alike[EMBEDDING], measure)
    places: dict[str, list[int]] = {}
    for i, run in enumerate(similarity.runs):
        places.setdefault(run["method"], []).append(i)
    rows, same_seed = [], False
    for first, here in places.items():
        cells = []
        for second, there in places.items():
            pairs = [(i, j) for i in here for j in there if similarity.two_seeds(i, j)]
            if not pairs and first != second:  # one seed alone, the same
                pairs, same_seed = [(i, j) for i in here for j in there], True
            cells.append(_number(defined(float(np.mean([matrix[p] for p in pairs]))) if pairs else None))
        rows.append([first, *cells])
    notes = ["on the diagonal: two seeds of one method; a dash: there is one seed"]
    notes.append(
        "some pairs have one seed, so the same first weights, which makes them alike; with several seeds all "
        "pairs have two"
        if same_seed
        else "all pairs have two seeds"
    )
    return Sheet(title, ["method", *places], rows, len(places), notes)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def _share(value: float | None, left: np.ndarray) -> str:
    """The interval of a share from those without each group of classes, a star where it is cut at 0 or 1."""
    low, high = (None, None) if value is None else jackknife(value, left)
    if low is None or high is None:
        return "–"
    ends = cut(low, high, (0.0, 1.0))
    return f"{ends[0]:.3f} to {ends[1]:.3f}{'*' * (ends != (low, high))}"
