"""Tables and charts of the page of a fit."""

from typing import Any

from nearkin.fitting.estimate import worth
from nearkin.fitting.fitted import Fitted
from nearkin.fitting.in_words import WITHOUT
from nearkin.pages._words import called
from nearkin.present import Bars, Chart, Column, Dots, Table
from nearkin.runs.tested import validation_of
from nearkin.units import COUNT, GAP, POINTS, SHARE

DRAWN = 15  # classes at either end of the chart


def means_chart(fitted: Fitted) -> Chart:
    """MAP@R of the networks with their intervals, best first."""
    (table,) = fitted.tables
    rows = [[row["network"], row["map_at_r"], row["map_at_r_low"], row["map_at_r_high"]] for row in table]
    kinds = [WITHOUT if row[0] == WITHOUT else "trained" for row in rows]
    columns: list[Column | str] = [
        "network",
        Column("map_at_r", "MAP@R", SHARE),
        Column("low", unit=SHARE),
        Column("high", unit=SHARE),
    ]
    values = [f"{row[0]} {SHARE.text(row[1], 1)} %" for row in rows if row[1] is not None]
    return Dots(
        name="first-means",
        title="MAP@R on classes it has never seen, mean and 95 % interval",
        table=Table("means", [*columns, "kind"], [[*row, kind] for row, kind in zip(rows, kinds, strict=True)]),
        x="network",
        y="map_at_r",
        low="low",
        high="high",
        by="kind",
        alt=f"{', '.join(values)}. The intervals are over classes; whether training helps is judged by the difference "
        "on the same classes, whose interval is narrower.",
    )


def class_table(fitted: Fitted) -> Table:
    """One row per class, what gained most first; where nothing was trained, the weakest first."""
    values: dict[str, dict[str, Any]] = {}
    for metric in ("map_at_r", "recall@1"):
        for what, runs in (("before", fitted.untrained), ("after", fitted.chosen)):
            side = fitted.by_class(runs, metric) if runs else None
            for name, mean, queries in zip(*vars(side).values(), strict=True) if side is not None else ():
                values.setdefault(name, {"class": name, "queries": int(queries)})[f"{metric} {what}"] = float(mean)
    for row in values.values():
        before, after = row.get("map_at_r before"), row.get("map_at_r after")
        row["gain"] = None if before is None or after is None else after - before
    order = sorted(
        values.values(), key=lambda row: (-(row["gain"] or 0.0), row.get("map_at_r before", 1.0), row["class"])
    )
    columns: list[Column | str] = ["class", Column("queries", unit=COUNT)]
    if fitted.chosen:
        columns.append(Column("gain", "MAP@R gained, points", POINTS, digits=1, signed=True))
    else:
        columns.append(Column("gain", hidden=True))
    for metric in ("map_at_r", "recall@1"):
        columns.append(Column(f"{metric} before", f"{called(metric)} {WITHOUT}", SHARE, digits=1))
        if fitted.chosen:
            columns.append(Column(f"{metric} after", f"{called(metric)} trained", SHARE, digits=1))
    return Table.of_records("classes", columns, order, title="Every class")


def class_chart(table: Table) -> Chart | None:
    """What training gained, class by class; of many classes both ends. None where nothing was trained."""
    rows = [[row["class"], row["gain"]] for row in table if row["gain"] is not None]
    if not rows:
        return None
    drawn = rows if len(rows) <= 2 * DRAWN else [*rows[:DRAWN], *rows[-DRAWN:]]
    left = [f"Drawn are the {DRAWN} that gained most and the {DRAWN} that gained least of {len(rows):,} classes."]
    most, least = (f"{row[0]} with {POINTS.text(row[1], 1, signed=True)} points" for row in (rows[0], rows[-1]))
    gain = Column("gain", "MAP@R gained, points", POINTS, digits=1, signed=True)
    return Bars(
        name="class-gains",
        title="What training gained, class by class",
        table=Table("class-gains", ["class", gain], drawn),
        x="class",
        y="gain",
        lying=True,
        alt=f"From {most} to {least}.",
        notes=[
            *(left if len(drawn) < len(rows) else []),
            "A class has few images: a single bar may be chance; the interval of the mean says what all together say.",
        ],
    )


def fold_table(fitted: Fitted) -> Table:
    """One row per fold, and one for the model on all classes."""
    rows: list[list[Any]] = []
    for number, plain in enumerate(fitted.untrained):
        run = fitted.chosen[number] if fitted.chosen else None
        sides = [fitted.by_class([side], "map_at_r") if side else None for side in (run, plain)]
        after, before = (None if side is None else worth(side).mean for side in sides)
        gained = None if after is None or before is None else after - before
        fold = f"{plain.stored['protocol'].get('fold', number) + 1} of {fitted.plan.folds}"
        classes = None if sides[1] is None else len(sides[1].classes)
        rows.append([fold, gained, after, before, *([None] * 4 if run is None else _chosen(fitted, run)), classes])
    if fitted.helps and fitted.method is not None:
        last = fitted.settings
        chosen = [fitted.method.name, str(last["train.epochs"]), last["train.blend"]]
        rows.append(["the model", None, None, None, *chosen, None, None])
    columns: list[Column | str] = [
        "fold",
        Column("gain", "MAP@R gained, points", POINTS, digits=1, signed=True),
        Column("after", "trained", SHARE, digits=1),
        Column("before", WITHOUT, SHARE, digits=1),
        "loss",
        Column("epoch", about="the epoch that was chosen, of those that were trained"),
        "blend",
        Column("validation", f"validation {called(fitted.select)}", SHARE, digits=1, hidden=not fitted.plan.share),
        Column("classes", "classes tested", COUNT),
    ]
    notes = ["blend: how far the network went from its first weights (0) to the trained ones (1)"]
    return Table("folds", columns, rows, "Fold by fold", notes if fitted.chosen else [])


def _chosen(fitted: Fitted, run: Any) -> list[Any]:
    """Loss, epoch, blend and validation of a fold's run."""
    final = run.read_json("final.json")
    name = next((method.name for method in fitted.trained if run.hash in [other.hash for other in method.runs]), GAP)
    validation = validation_of(run, fitted.select) if final["validation"] else None
    return [name, f"{final['epoch']} of {final['epochs_trained']}", final.get("blend", 1.0), validation]
