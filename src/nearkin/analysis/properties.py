"""What else than the class do neighbours share? Properties of images in the embeddings of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from nearkin.analysis._nr_precision import BAR, Categories, Shared, categories, nr_precision
from nearkin.analysis._over_runs import methods_of, of_each_run, stored_arrays
from nearkin.analysis.base import Analysis, stored_numbers
from nearkin.analysis.embedded import embeddings_and_columns, table_of, tested
from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.present import Bars, Chart, Column, Table
from nearkin.progress import bar
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.units import COUNT, NUMBER, SHARE

if TYPE_CHECKING:
    from nearkin.analysis._properties_study import PropertiesOfStudy

KINDS = ("as they are", "shuffled within classes")
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
    the figure means and what not: `nr_precision` of analysis/_nr_precision.py.

    Source: Kobs et al., section on the object level.

    Parameters:
        measured: the numbers of every property, the columns that are none and why.
        values: property -> (Q,) normalised R-precision of every query, NaN where it is undefined.
    """

    measured: dict[str, Any]
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, run: Run) -> "Properties":
        """Of the test images of a run, from its stored embeddings and the columns of its data set."""
        numbers = stored_numbers(cls, run.path / cls.folder, {})
        if numbers is not None and (values := stored_arrays(cls, run)) is not None:
            return cls(numbers, values)
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
        from nearkin.analysis._properties_study import PropertiesOfStudy

        runs = of_each_run(cls, gathered)
        return PropertiesOfStudy(methods_of(gathered), {name: run.numbers for name, run in runs.items()})

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of every property, and which columns are none."""
        return self.measured

    @cached_property
    def tables(self) -> list[Table]:
        """One row per property, the strongest first; beside it what the class alone gives."""
        measured = sorted(self.measured["properties"].items(), key=lambda item: -item[1]["nr_precision"])
        keys = ("share", "precision", "nr_precision", "by_class", "by_class_std", "queries", "categories")
        rows = [
            [
                name,
                f"{one['categories']} {'bins' if one['edges'] else 'values'}",
                *(one[key] for key in keys),
                marks(one),
            ]
            for name, one in measured
        ]
        columns = [
            "property",
            "has",
            Column("share", "p", SHARE, digits=1, about="what chance has"),
            Column("precision", "R-precision", SHARE, digits=1),
            Column("nr_precision", "normalised", NUMBER, digits=2, star="marks"),
            Column("by_class", "by class", NUMBER, digits=2, plus_minus="by_class_std"),
            Column("by_class_std", unit=NUMBER),
            Column("queries", unit=COUNT),
            Column("categories", unit=COUNT),
            "marks",
        ]
        notes = [*WHAT_IT_SAYS, *(f"{name} is left out: {why}" for name, why in self.measured["left_out"].items())]
        table = Table("all", columns, rows, "Properties that neighbours share", notes)
        both = [
            [name, *pair]
            for name, one in measured
            for pair in ((KINDS[0], one["nr_precision"]), (KINDS[1], one["by_class"]))
        ]
        value = Column("value", "normalised R-precision", NUMBER, digits=2)
        return [table, Table("bars", ["property", "values", value], both, detail=True)]

    @property
    def charts(self) -> list[Chart]:
        """Every property beside what the class alone would bring; a line at the bar of significance."""
        return [
            Bars(
                name="bars",
                title="Normalised R-precision of properties",
                table=self.tables[1],
                x="property",
                y="value",
                by="values",
                lying=True,
                line=BAR,
                alt=f"Normalised R-precision of every property: by chance 0, beyond the dotted line ({BAR}) no chance.",
            )
        ]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The value of every query."""
        return self.values


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
    kept: dict[str, Categories] = {}
    left_out: dict[str, str] = {}
    if labels is not None:
        columns = {CLASS: _spread(labels, places), **columns}
    for name, column in columns.items():
        made = categories(name, column)
        here = made if isinstance(made, str) else categories(name, np.asarray(column)[places])
        if isinstance(made, str) or isinstance(here, str):
            left_out[name] = str(here)
        else:
            kept[name] = Categories(made.codes[places], made.names, made.edges)
    if not set(kept) - {CLASS}:
        raise NearkinError(f"no property is left: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}")
    random = np.random.default_rng(0)
    codes: dict[tuple[str, int], np.ndarray] = {(name, 0): one.codes for name, one in kept.items()}
    for name, one in kept.items():
        if labels is not None and name != CLASS:
            codes |= {(name, i): shuffled(one.codes, labels, random) for i in range(1, SHUFFLES + 1)}
    with bar("Neighbours") as advance:
        shared = nr_precision(z.to(torch.float32), codes, roles=roles, progress=advance)
    numbers = {}
    for name, one in kept.items():
        means = [shared[name, i].mean for i in range(1, SHUFFLES + 1) if (name, i) in shared]
        numbers[name] = _numbers(shared[name, 0], one, means)
    values = {name: shared[name, 0].values.astype(np.float32) for name in kept}
    return Properties({"bar": BAR, "properties": numbers, "left_out": left_out}, values)


def _numbers(shared: Shared, of: Categories, shuffles: list[float]) -> dict[str, Any]:
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


def marks(one: Mapping[str, Any]) -> str:
    """* above the published bar, † beyond what comes with the class."""
    return "*" * bool(one["significant"]) + "†" * bool(one.get("beyond_class"))


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
