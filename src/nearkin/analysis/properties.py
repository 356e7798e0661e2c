"""What else than the class do neighbours share? Properties of images in the embeddings of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.nr_precision import BAR, Categories, Shared, categories, nr_precision
from nearkin.analysis.over_runs import found_in, methods_of, stored, stored_arrays
from nearkin.analysis.tested import embeddings_and_columns, table_of, tested
from nearkin.comparison.gather import Gathered
from nearkin.comparison.pages import Sheet
from nearkin.errors import NearkinError
from nearkin.progress import bar
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run

if TYPE_CHECKING:
    from nearkin.analysis.properties_study import PropertiesOfStudy

SHUFFLES = 10  # how often a property is shuffled within classes, to see what the class alone gives
CLASS = "class"
WHAT_IT_SAYS = (
    f"a normalised R-precision of at least {BAR} is marked *, as published: that is far beyond chance; it is no size "
    "of an effect, for it grows with the number of images of a value: R-precision beside p, what chance has, is one",
    f"by class: the same when the property is shuffled within each class ({SHUFFLES} times), what comes with the class "
    "alone; † marks a value outside the 99 % prediction interval of these: neighbours share the property, if only a "
    "little, these models only",
)


@ANALYSES.register("properties")
@dataclass(frozen=True)
class Properties(Analysis):
    """Normalised R-precision of every property of the test images: is it in the embeddings?

    Properties are the columns of the data set (for glyphs all that was drawn at random: face, size, rotation, ...; for
    csv every further column) and, as a yardstick, the class. Numbers are put into 10 bins of equally many images. What
    the figure means and what not: `nearkin.analysis.nr_precision.nr_precision`.

    Source: Kobs et al., section on the object level.

    Parameters:
        told: the numbers of every property, the columns that are none and why.
        values: property -> (Q,) normalised R-precision of every query, NaN where it is undefined.
        options: there are none.
    """

    told: dict[str, Any]
    values: dict[str, np.ndarray]
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> "Properties":
        """Of the test images of a run, from its stored embeddings and the columns of its data set."""
        if (told := stored(cls, run, {})) and (values := stored_arrays(cls, run)) is not None:
            return cls(told, values)
        seen = tested(run)
        table, places = table_of(run, seen)
        columns = {name: column for name, column in table.columns.items() if name != "split"}
        if not columns:
            raise NearkinError(
                f"run {run.hash}: {table.name} tells nothing of its images but their class; properties are the further "
                "columns of a data set such as csv or glyphs"
            )
        return properties(seen.z, columns, seen.labels, roles=None if seen.plain else seen.roles, places=places)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Properties":
        """Of anyone's embeddings: one .npz or .parquet file in which every further array of N values is a property."""
        if len(paths) != 1:
            raise NearkinError(f"properties looks at one file of embeddings, not at {len(paths)}")
        path = paths[0]
        z, labels, columns = embeddings_and_columns(path)
        if not columns:
            raise NearkinError(f"{path} has no property: no further column of {len(z)} values")
        return properties(z, columns, labels)

    @classmethod
    def between(cls, gathered: Gathered) -> "PropertiesOfStudy":
        """Of all tested runs of a study, and ranking against classification losses."""
        from nearkin.analysis.properties_study import PropertiesOfStudy

        return PropertiesOfStudy(methods_of(gathered), {k: v.summary for k, v in found_in(cls, gathered).items()})

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers of every property, and which columns are none."""
        return self.told

    def sheets(self) -> dict[str, Sheet]:
        """One row per property, the strongest first."""
        told = sorted(self.summary["properties"].items(), key=lambda item: -item[1]["nr_precision"])
        rows = [
            [
                name,
                f"{own['categories']} {'bins' if own['edges'] else 'values'}",
                f"{100 * own['share']:.1f}",
                f"{100 * own['precision']:.1f}",
                f"{own['nr_precision']:.2f}{marks(own)}",
                "–" if own["by_class"] is None else f"{own['by_class']:.2f} ± {own['by_class_std']:.2f}",
            ]
            for name, own in told
        ]
        header = ["property", "has", "p %", "R-precision %", "normalised", "by class"]
        notes = [*WHAT_IT_SAYS, *(f"{name} is left out: {why}" for name, why in self.told["left_out"].items())]
        return {"properties": Sheet("Properties that neighbours share", header, rows, 4, notes)}

    def tables(self) -> dict[str, Table]:
        """The numbers of the properties."""
        told = self.summary["properties"]
        keys = [key for key in next(iter(told.values())) if key != "edges"]
        return {"all": (["property", *keys], [[name, *(own[key] for key in keys)] for name, own in told.items()])}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """The value of every query, and a figure."""
        from nearkin.analysis import properties_figures as figures

        return {
            "properties.npz": lambda path: np.savez(path, **self.values),  # type: ignore[arg-type]
            "properties.png": lambda path: figures.bars(self.summary["properties"]).savefig(path),
        }


def properties(
    z: Tensor,
    columns: Mapping[str, np.ndarray],
    labels: np.ndarray | None,
    *,
    roles: np.ndarray | None = None,
    places: np.ndarray | None = None,
) -> Properties:
    """The properties in `columns` of N embeddings.

    Parameters:
        z: (N, D) embeddings.
        columns: name -> one value per image.
        labels: (N,) classes; None: not known.
        roles: (N,) query, gallery or both; None: all are both.
        places: (N,) where the embeddings stand in the columns, whose bins are those of all their values; None: columns
            have N values.
    """
    places = np.arange(len(z)) if places is None else places
    found: dict[str, Categories] = {}
    left_out: dict[str, str] = {}
    if labels is not None:
        columns = {CLASS: _spread(labels, places), **columns}
    for name, column in columns.items():
        made = categories(name, column)
        here = made if isinstance(made, str) else categories(name, np.asarray(column)[places])
        if isinstance(made, str) or isinstance(here, str):
            left_out[name] = str(here)
        else:
            found[name] = Categories(made.codes[places], made.names, made.edges)
    if not set(found) - {CLASS}:
        raise NearkinError(f"no property is left: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}")
    random = np.random.default_rng(0)
    codes: dict[tuple[str, int], np.ndarray] = {(name, 0): own.codes for name, own in found.items()}
    for name, own in found.items():
        if labels is not None and name != CLASS:
            codes |= {(name, i): shuffled(own.codes, labels, random) for i in range(1, SHUFFLES + 1)}
    with bar("Neighbours") as advance:
        shared = nr_precision(z.to(torch.float32), codes, roles=roles, progress=advance)
    told = {}
    for name, own in found.items():
        means = [shared[name, i].mean for i in range(1, SHUFFLES + 1) if (name, i) in shared]
        told[name] = _told(shared[name, 0], own, means)
    values = {name: shared[name, 0].values.astype(np.float32) for name in found}
    return Properties({"bar": BAR, "properties": told, "left_out": left_out}, values)


def _told(shared: Shared, of: Categories, shuffles: list[float]) -> dict[str, Any]:
    mean, std = (float(np.mean(shuffles)), float(np.std(shuffles, ddof=1))) if shuffles else (None, None)
    return {
        "nr_precision": shared.mean,
        "significant": shared.mean >= BAR,
        "precision": shared.precision,
        "share": shared.share,
        "queries": shared.queries,
        "categories": len(of.names),
        "edges": None if of.edges is None else of.edges.tolist(),
        "by_class": mean,
        "by_class_std": std,
        "beyond_class": None if mean is None or std is None else beyond(shared.mean, mean, std),
    }


def beyond(value: float, mean: float, std: float) -> bool:
    """Does a value lie outside the 99 % prediction interval of SHUFFLES values with this mean and deviation?"""
    return bool(abs(value - mean) > stats.t.ppf(0.995, SHUFFLES - 1) * std * np.sqrt(1 + 1 / SHUFFLES))


def marks(own: Mapping[str, Any]) -> str:
    """* above the published bar, † beyond what comes with the class."""
    return "*" * bool(own["significant"]) + "†" * bool(own.get("beyond_class"))


def _spread(labels: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Labels as a column: empty where no embedding stands."""
    column = np.full(int(places.max()) + 1, "", dtype=np.asarray(labels).astype(str).dtype)
    column[places] = np.asarray(labels).astype(str)
    return column


def shuffled(codes: np.ndarray, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The values of a property (N,), shuffled among the images of each class."""
    number = np.unique(labels, return_inverse=True)[1]
    out = np.empty_like(codes)
    out[np.argsort(number, kind="stable")] = codes[np.lexsort((random.random(len(codes)), number))]
    return out
