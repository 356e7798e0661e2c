"""What the analysis of spectra draws: spectra, means against the test, and methods with and without a regulariser."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nearkin.comparison.alike import NONE
from nearkin.present import Bars, Chart, Column, Lines, Panels, Points, Table
from nearkin.units import COUNT, NUMBER, SHARE

ALL, CLASS = "all training images", "a class, mean over classes"
SPACE = [
    Column("rho", "ρ", NUMBER, about="without the largest singular value"),
    Column("rho_all", "ρ all", NUMBER, about="all singular values"),
    Column("pi_intra", "π intra", NUMBER, about="mean distance within a class"),
    Column("pi_inter", "π inter", NUMBER, about="mean distance between class means"),
    Column("pi_ratio", "π ratio", NUMBER, about="their ratio"),
]
TEST = [Column("recall@1", "Recall@1", SHARE), Column("map_at_r", "MAP@R", SHARE)]
ACROSS = 3  # panels of spectra in a row


def singular_table(
    spectra: Mapping[str, Mapping[str, np.ndarray]], places: Mapping[str, tuple[str, str]] | None = None
) -> Table:
    """Singular values, each also as a share of their sum.

    Parameters:
        spectra: method -> those of all training embeddings, and of a class on average.
        places: method -> what it is without its regulariser, and this regulariser.
    """
    places = places or {}
    rows = [
        [name, *places.get(name, (name, NONE)), of, i, float(value), float(value / values.sum()) if value > 0 else None]
        for name, one in spectra.items()
        for of, values in ((ALL, one["singular"]), (CLASS, one["classes"]))
        for i, value in enumerate(values, start=1)
    ]
    columns = ["method", "objective", "regulariser", "of", Column("number", "number of the singular value", COUNT)]
    columns += [Column("value", unit=NUMBER), Column("share", "share of the sum", SHARE)]
    return Table("singular", columns, rows, detail=True)


def curves(table: Table, methods: Sequence[str]) -> Chart:
    """The spectra of methods side by side: of all images, and of a class."""
    by = "method" if len(methods) > 1 else None
    panels = [
        _spectrum(name, of, table, by, of=of, method=list(methods)) for name, of in (("all", ALL), ("class", CLASS))
    ]
    alt = "Singular values of the training embeddings as shares of their sum, the largest first."
    return Panels(name="curves", title="Spectrum of the training embeddings", charts=panels, across=2, alt=alt)


def against_test(means: Table) -> Chart:
    """ρ and densities of every method against Recall@1, means with intervals, in the colours of the regularisers where
    there are any."""
    by = "regulariser" if len(set(means.column("regulariser"))) > 1 else "method"
    axes: dict[str, Any] = {"table": means, "y": "recall@1", "y_title": "test Recall@1 %", "by": by, "text": "method"}
    axes |= {"named": False, "low": "recall@1_low", "high": "recall@1_high"}
    panels = [
        Points(
            name=column.name,
            title=column.heading,
            x=column.name,
            left=f"{column.name}_low",
            right=f"{column.name}_high",
            **axes,
        )
        for column in SPACE
        if column.name != "rho_all"
    ]
    alt = (
        "ρ and densities of the training embeddings against Recall@1 of the test: means with 95 % intervals over seeds."
    )
    return Panels(name="test", title="Training embeddings against the test", charts=panels, across=2, alt=alt)


def with_and_without(means: Table, singular: Table, objectives: Sequence[str]) -> list[Chart]:
    """Methods that are there with a regulariser and without: bars of Recall@1 and ρ, and a panel of spectra each."""
    axes: dict[str, Any] = {"table": means, "x": "objective", "by": "regulariser", "lying": True}
    axes["only"] = {"objective": list(objectives)}
    bars = [
        Bars(name=name, y=column, low=f"{column}_low", high=f"{column}_high", y_title=title, **axes)
        for name, column, title in (("recall", "recall@1", "Recall@1 %"), ("decay", "rho", "ρ"))
    ]
    both = Panels(name="regularisers", title="With and without a regulariser", charts=bars, across=1)
    both.alt = "Recall@1 of the test and ρ of the training embeddings: means with 95 % intervals over seeds."
    panels = [
        _spectrum(f"spectrum-{i}", objective, singular, "regulariser", of=CLASS, objective=objective)
        for i, objective in enumerate(objectives)
    ]
    spectra = Panels(name="spectra", title="Spectra of a class, with and without", charts=panels, across=ACROSS)
    spectra.alt = (
        "The first 35 singular values of a class, mean over classes, as shares of their sum: one panel per method."
    )
    return [both, spectra]


def _spectrum(name: str, title: str, table: Table, by: str | None, **only: Any) -> Lines:
    return Lines(name=name, title=title, table=table, only=only, by=by, x="number", y="share", log_y=True)
