"""The page of one run: its honest number beside the untrained one, curves, classes, and how to use its model."""

from typing import Any

import numpy as np

from nearkin.comparison.gather import Gathered, Member
from nearkin.config.parse import flatten
from nearkin.report.base import Chart, Column, Grid, Lines, Part, Section, Table, Words
from nearkin.report.material import (
    Record,
    called,
    data_name,
    heading,
    metric_column,
    percent,
    shown_metric,
    signed,
    unit,
)
from nearkin.report.overview import network, protocol, rule
from nearkin.report.reproduce import explained
from nearkin.runs.listing import describe
from nearkin.runs.store import Run, Store

NETWORK = ("model.backbone", "model.weights", "model.pool", "data.size", "data.crop")
MOST_CLASSES = 500  # rows that the page shows; all are in the download


def first_screen(
    record: Record, metric: str, twins: dict[str, Record], openings: int
) -> tuple[str, list[str], list[tuple[str, str, str]]]:
    """Title, sentences and figures: what is this, how good is it, is it real, what next."""
    member, value = record.member, record.value(metric)
    loss = "untrained network" if member.untrained else member.settings["loss.name"]
    title = f"{loss} on {data_name(member)}"
    unseen = (
        "images of classes that training never saw"
        if member.settings["protocol.name"] != "within"
        else "images that training never saw"
    )
    lead = [f"Run {member.run.hash}: {network(member)}. Tested on {record.result['test_n']:,} queries, {unseen}."]
    facts = [
        (
            f"test {called(metric)}",
            f"{shown_metric(metric, value)} {unit(metric)}".strip(),
            "one seed: no interval; another seed would give another number",
        )
    ]
    for name, twin in twins.items():
        other = twin.value(metric)
        if other is not None:
            gain = (
                ""
                if value is None
                else f"; training gave {signed(metric, value - other)}{' points' if unit(metric) else ''}"
            )
            facts.append(
                (
                    "untrained, same network and images",
                    f"{shown_metric(metric, other)} {unit(metric)}".strip(),
                    f"{name}, run {twin.member.run.hash}{gain}",
                )
            )
    if not twins and not member.untrained:
        facts.append(("untrained, same network and images", "not stored", "the command is in the section on its use"))
    facts.append(
        (
            "is it real?",
            f"epoch {record.final['epoch']}: {rule(record.final)}",
            f"test labels stayed locked until then; this store has opened the test split {openings:,} times",
        )
    )
    facts.append(
        ("what next?", f"nearkin embed {member.run.hash} IMAGES", "gives an embedding for each image of a folder")
    )
    return title, lead, facts


def twins_of(member: Member, store: Store) -> dict[str, Record]:
    """The stored untrained networks like this one, tested on the same images: name -> the nearest in seed."""
    if member.untrained:
        return {}
    found: dict[str, Record] = {}
    for run in store.runs():
        text = (run.path / "spec.yaml").read_text(errors="replace")
        if "epochs: 0\n" not in text or member.head["data_hash"] not in text or not run.tested:
            continue  # most runs are none: do not parse them
        words = flatten(run.stored)
        same = all(words.get(key) == member.settings.get(key) for key in NETWORK)
        if words.get("train.epochs") != 0 or not same or not _same_test(member.run, run):
            continue
        pooled = words["model.head"] == "none"
        if not pooled and (words["model.head"], words["model.dim"]) != (
            member.settings["model.head"],
            member.settings["model.dim"],
        ):
            continue
        name = "pooled feature" if pooled else "random head"
        twin = Record(Member({}, words["train.seed"], words.get("protocol.fold"), run, name))
        if name not in found or twin.member.seed == member.seed:
            found[name] = twin
    return found


def _same_test(first: Run, second: Run) -> bool:
    if first.head()["split_hash"] == second.head()["split_hash"]:
        return True
    return first.read_json("split.json").get("test") == second.read_json("split.json").get("test")


def result_section(record: Record, metric: str, twins: dict[str, Record]) -> Section:
    """All metrics, beside the untrained ones."""
    names = list(record.metrics)
    header = ["metric", "this run", *twins]
    rows = [[name, record.value(name), *(twin.value(name) for twin in twins.values())] for name in names]
    columns = [Column("metric", "metric", lambda row: heading(row["metric"])), *map(_value, header[1:])]
    grid = Grid(
        "result",
        "Test metrics",
        Table("metrics", header, rows),
        columns=columns,
        notes=[
            "Means over queries for which the metric is defined. One run has no interval: train other seeds, seed=1."
        ],
    )
    told = {
        "data": f"{data_name(record.member)}, data hash {record.member.head['data_hash']}",
        "images and classes": str(record.final.get("split", "–")).partition("; split")[0],
        "protocol": protocol(record.member),
        "choice of the epoch": rule(record.final),
        "network": network(record.member),
        "epochs trained": record.final["epochs_trained"],
        "steps": record.final.get("steps"),
        "seconds": record.final.get("seconds"),
        "settings, where they differ from the defaults": describe(record.member.head["spec"]),
    }
    facts = Grid(
        "facts",
        "How it was made",
        Table("facts", ["what", "value"], [[k, v if v is None else str(v)] for k, v in told.items()]),
    )
    parts: list[Part] = [grid, facts]
    if not record.final["validation"] and not record.member.untrained:
        parts.insert(0, Words("There were no validation images: the epoch is the last one, by rule.", "warning"))
    return Section(
        "results", "The result", "What the test gave, and what an untrained network gives on the same images.", parts
    )


def _value(name: str) -> Column:
    """A column of values, each of the metric that its row names."""
    return Column(name, name, lambda row: shown_metric(row["metric"], row[name]))


def curve_section(record: Record, metric: str, select: str) -> Section | None:
    """Validation, test where it was kept, and the loss; None for an untrained network."""
    rows: list[list[Any]] = []
    for point in record.curve:
        for split, name in (("validation", select), ("test", metric), ("test", select)):
            if point.get(f"{split}.{name}") is not None and [f"{split} {name}", point["epoch"]] not in [
                row[:2] for row in rows
            ]:
                rows.append([f"{split} {name}", point["epoch"], point[f"{split}.{name}"]])
    parts: list[Part] = []
    if rows:
        rows.sort(key=lambda row: (row[0], row[1]))
        parts.append(
            Chart(
                "curve",
                "Validation and test",
                Table("curve", ["curve", "epoch", "value"], rows),
                form="lines",
                x="epoch",
                y="value",
                by="curve",
                percent=percent(metric, "value"),
                y_title="%" if percent(metric, metric) else "value",
                alt=f"The chosen epoch is {record.final['epoch']} of {record.final['epochs_trained']}.",
                notes=["Where there is a test curve, it was joined after the run was final: it chose nothing."],
            )
        )
    losses = [[point["epoch"], point["loss"]] for point in record.curve if point.get("loss") is not None]
    if losses:
        parts.append(
            Chart(
                "loss",
                "Training loss",
                Table("loss", ["epoch", "loss"], losses),
                form="lines",
                x="epoch",
                y="loss",
                alt="Mean loss of the steps of each epoch.",
            )
        )
    return Section("training", "Training", "How the curves went, epoch by epoch.", parts) if parts else None


def class_section(record: Record, metric: str) -> Section | None:
    """Every test class by itself; None where values per query are not stored."""
    table = class_table(record, metric)
    if table is None:
        return None
    shown = Table(table.name, table.header, table.rows[:MOST_CLASSES])
    names = [name for name in table.header if name not in ("class", "queries")]
    columns = [
        Column("class"),
        Column("queries"),
        *(metric_column(m) for m in names),
    ]
    notes = [f"The {MOST_CLASSES} weakest of {len(table.rows):,} classes."] if len(table.rows) > MOST_CLASSES else []
    grid = Grid("classes-grid", "", shown, columns=columns, search=True, notes=notes)
    return Section("classes", "Class by class", "The classes it finds worst come first.", [grid])


def class_table(record: Record, metric: str) -> Table | None:
    """Class, number of queries and mean metrics, the weakest first."""
    import pyarrow.parquet as pq

    path = record.member.run.path / "per_query.parquet"
    if not path.is_file():
        return None
    found = pq.read_table(path)
    names = [
        name for name in dict.fromkeys((metric, "recall@1", "map_at_r", "r_precision")) if name in found.column_names
    ]
    labels = np.array(found["label"].to_pylist(), dtype=object)
    order, place = np.unique(labels.astype(str), return_inverse=True)
    count = np.bincount(place, minlength=len(order))
    rows: list[list[Any]] = [[str(name), int(n)] for name, n in zip(order, count, strict=True)]
    for name in names:
        values = found[name].to_numpy(zero_copy_only=False).astype(float)
        defined = ~np.isnan(values)
        sums, n = (
            np.bincount(place[defined], values[defined], len(order)),
            np.bincount(place[defined], minlength=len(order)),
        )
        for row, total, known in zip(rows, sums, n, strict=True):
            row.append(float(total / known) if known else None)
    rows.sort(key=lambda row: (row[2] is None, row[2], row[0]) if names else (row[0],))
    return Table("classes", ["class", "queries", *names], rows)


def use_section(record: Record, gathered: Gathered, twins: dict[str, Record]) -> Section:
    """Commands and Python lines."""
    name = record.member.run.hash
    lines = [
        (f"nearkin embed {name} IMAGES -o emb.npz", "a folder of images, or one image"),
        ("nearkin evaluate emb.npz", "measures it, where images lie in class folders"),
        (f"nearkin test {name} --metrics nmi,recall@100", "more metrics, without training"),
    ]
    if not twins and not record.member.untrained:
        lines.append(("nearkin train SETTINGS epochs=0", "the untrained network: the settings below, without training"))
    commands = explained(lines)
    size = record.member.settings["model.dim"] or "pooled"
    python = f'''import nearkin

model = nearkin.load("{gathered.store.root.name}/{name}")
z = model.embed(["a.jpg", "b.jpg"])     # one unit vector per image, {size} numbers
print(z @ z.T)                          # cosine similarities'''
    return Section(
        "use",
        "How to use the model",
        "On the command line, and in Python.",
        [Lines("use-commands", "Commands", text=commands), Lines("use-python", "Python", text=python)],
    )
