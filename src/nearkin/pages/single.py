"""The page of one run: its honest number beside the untrained one, curves, classes, and how to use its model."""

from collections import Counter
from typing import Any

from nearkin.comparison.gather import Gathered, Member
from nearkin.config.parse import flatten
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages.base import Chart, Column, Grid, Lines, Part, Section, Table, Words
from nearkin.pages.first import Fact
from nearkin.pages.material import data_name, final_of
from nearkin.pages.overview import network, protocol, rule
from nearkin.pages.reproduce import explained
from nearkin.pages.words import called, heading, metric_column, percent, shown_metric, signed, unit
from nearkin.runs.listing import describe
from nearkin.runs.store import Run, Store
from nearkin.runs.tested import values_per_query
from nearkin.statistics.unit import by_class

NETWORK = ("model.backbone", "model.weights", "model.pool", "data.size", "data.crop")
MOST_CLASSES = 500  # rows that the page shows; all are in the download


def first_screen(
    member: Member, metric: str, twins: dict[str, Member], openings: int
) -> tuple[str, list[str], list[Fact]]:
    """Title, sentences and facts: what is this, how good is it, is it real, what next."""
    value, final = member.value(metric), final_of(member)
    title = f"{'untrained network' if member.untrained else member.settings['loss.name']} on {data_name(member)}"
    unseen = "images of classes that training never saw"
    if member.settings["protocol.name"] == "within":
        unseen = "images that training never saw"
    lead = [f"Run {member.run.hash}: {network(member)}. Tested on {member.run.result['test_n']:,} queries, {unseen}."]
    facts = [
        (
            f"test {called(metric)}",
            f"{shown_metric(metric, value)} {unit(metric)}".strip(),
            "one seed: no interval; another seed would give another number",
        )
    ]
    for name, twin in twins.items():
        if (other := twin.value(metric)) is not None:
            facts.append(
                (
                    "untrained, same network and images",
                    f"{shown_metric(metric, other)} {unit(metric)}".strip(),
                    f"{name}, run {twin.run.hash}{_gain(member, twin, metric)}",
                )
            )
    if not twins and not member.untrained:
        facts.append(("untrained, same network and images", "not stored", "the command is in the section on its use"))
    locked = f"test labels stayed locked until then; this store has opened the test split {openings:,} times"
    embed = f"nearkin embed {member.run.hash} IMAGES"
    return (
        title,
        lead,
        [
            *facts,
            ("is it real?", f"epoch {final['epoch']}: {rule(final)}", locked),
            ("what next?", embed, "gives an embedding for each image of a folder"),
        ],
    )


def _gain(member: Member, twin: Member, metric: str) -> str:
    """What training gave; runs of different seeds are not subtracted."""
    value, other = member.value(metric), twin.value(metric)
    if value is None or other is None:
        return ""
    if member.seed != twin.seed:
        return f"; its seed is {twin.seed}, not {member.seed}: no difference is taken"
    return f"; training gave {signed(metric, value - other)}{' points' if unit(metric) else ''}"


def twins_of(member: Member, store: Store) -> dict[str, Member]:
    """The stored untrained networks like this one, tested on the same images: name -> one, of the same seed where there
    is one."""
    if member.untrained:
        return {}
    found: dict[str, Member] = {}
    for run in store.runs():
        try:
            text = (run.path / "spec.yaml").read_text(errors="replace")
        except OSError:  # damaged, or just removed
            continue
        if "epochs: 0\n" not in text or member.head["data_hash"] not in text or not run.tested:
            continue  # most runs are none: do not parse them
        if run.damage() is not None:
            continue
        words = flatten(run.stored)
        same = all(words.get(key) == member.settings.get(key) for key in NETWORK)
        if words.get("train.epochs") != 0 or not same or not _same_test(member.run, run):
            continue
        pooled = words["model.head"] == "none"
        if not pooled and any(words[key] != member.settings[key] for key in ("model.head", "model.dim")):
            continue
        name = "pooled feature" if pooled else "random head"
        twin = Member({}, words["train.seed"], words.get("protocol.fold"), run, name)
        if name not in found or twin.seed == member.seed:
            found[name] = twin
    return found


def _same_test(first: Run, second: Run) -> bool:
    """Are the same rows queries and gallery? The training rows of the two may differ."""
    if first.head()["split_hash"] == second.head()["split_hash"]:
        return True
    rows = [
        {key: split.get(key) for key in ("query", "gallery")}
        for split in (first.read_json("split.json"), second.read_json("split.json"))
    ]
    return rows[0] == rows[1] and rows[0]["query"] is not None


def result_section(member: Member, twins: dict[str, Member]) -> Section:
    """All metrics, beside the untrained ones."""
    final, header = final_of(member), ["metric", "this run", *twins]
    rows = [[name, member.value(name), *(twin.value(name) for twin in twins.values())] for name in member.run.metrics()]
    columns = [Column("metric", "metric", lambda row: heading(row["metric"])), *map(_value, header[1:])]
    notes = ["Means over queries for which the metric is defined. One run has no interval: train other seeds, seed=1."]
    grid = Grid("result", "Test metrics", Table("metrics", header, rows), columns=columns, notes=notes)
    told = {
        "data": f"{data_name(member)}, data hash {member.head['data_hash']}",
        "images and classes": str(final.get("split", "–")).partition("; split")[0],
        "protocol": protocol(member),
        "choice of the epoch": rule(final),
        "network": network(member),
        "epochs trained": final["epochs_trained"],
        "steps": final.get("steps"),
        "seconds": final.get("seconds"),
        "settings, where they differ from the defaults": describe(member.head["spec"]),
    }
    facts = Table("facts", ["what", "value"], [[k, v if v is None else str(v)] for k, v in told.items()])
    parts: list[Part] = [grid, Grid("facts", "How it was made", facts)]
    if not final["validation"] and not member.untrained:
        parts.insert(0, Words("There were no validation images: the epoch is the last one, by rule.", "warning"))
    lead = "What the test gave, and what an untrained network gives on the same images."
    return Section("results", "The result", lead, parts)


def _value(name: str) -> Column:
    """A column of values, each of the metric that its row names."""
    return Column(name, name, lambda row: shown_metric(row["metric"], row[name]))


def curve_section(member: Member, metric: str, select: str) -> Section | None:
    """Validation, test where it was kept, and the loss; None for an untrained network."""
    points, parts = member.run.curve(), list[Part]()
    names = [name for name in dict.fromkeys((select, metric)) if metric_of(name).is_share == metric_of(select).is_share]
    curves = [("validation", select), *(("test", name) for name in names)]  # of one unit: they share an axis
    rows: list[list[Any]] = [
        [f"{split} {name}", point["epoch"], point[f"{split}.{name}"]]
        for split, name in curves
        for point in points
        if point.get(f"{split}.{name}") is not None
    ]
    if rows:
        final = final_of(member)
        parts.append(
            Chart(
                "curve",
                "Validation and test",
                Table("curve", ["curve", "epoch", "value"], rows),
                form="lines",
                x="epoch",
                y="value",
                by="curve",
                percent=percent(select, "value"),
                y_title=unit(select) or "value",
                alt=f"The chosen epoch is {final['epoch']} of {final['epochs_trained']}.",
                notes=["Where there is a test curve, it was joined after the run was final: it chose nothing."],
            )
        )
    losses = [[point["epoch"], point["loss"]] for point in points if point.get("loss") is not None]
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


def class_section(member: Member, metric: str) -> Section | None:
    """Every test class by itself; None where values per query are not stored."""
    table = class_table(member, metric)
    if table is None:
        return None
    shown = Table(table.name, table.header, table.rows[:MOST_CLASSES])
    columns = [Column("class"), Column("queries"), *(metric_column(name) for name in table.header[2:])]
    notes = [f"The {MOST_CLASSES} weakest of {len(table.rows):,} classes."] if len(table.rows) > MOST_CLASSES else []
    grid = Grid("classes-grid", "", shown, columns=columns, search=True, notes=notes)
    return Section("classes", "Class by class", "The classes it finds worst come first.", [grid])


def class_table(member: Member, metric: str) -> Table | None:
    """Class, number of queries and mean metrics, the weakest first."""
    names = dict.fromkeys((metric, "recall@1", "map_at_r", "r_precision"))
    stored = {name: values for name in names if (values := values_per_query(member.run, name)) is not None}
    if not stored:
        return None
    labels = [str(label) for label in next(iter(stored.values()))[0]]
    means: list[dict[str, float]] = []
    for values in stored.values():
        grouped = by_class(*values)
        means.append({} if grouped is None else dict(zip(grouped.classes, grouped.means.tolist(), strict=True)))
    count, sign = Counter(labels), metric_of(next(iter(stored))).sign or 1
    order = sorted(sorted(set(labels)), key=lambda label: sign * means[0].get(label, sign * float("inf")))
    rows = [[label, count[label], *(mean.get(label) for mean in means)] for label in order]
    return Table("classes", ["class", "queries", *stored], rows)


def use_section(member: Member, gathered: Gathered, twins: dict[str, Member]) -> Section:
    """Commands and Python lines."""
    name = member.run.hash
    lines = [
        (f"nearkin embed {name} IMAGES -o emb.npz", "a folder of images, or one image"),
        ("nearkin evaluate emb.npz", "measures it, where images lie in class folders"),
        (f"nearkin test {name} --metrics nmi,recall@100", "more metrics, without training"),
    ]
    if not twins and not member.untrained:
        lines.append(("nearkin train SETTINGS epochs=0", "the untrained network: the settings below, without training"))
    size = member.settings["model.dim"] or "pooled"
    python = f'''import nearkin

model = nearkin.load("{gathered.store.root.name}/{name}")
z = model.embed(["a.jpg", "b.jpg"])     # one unit vector per image, {size} numbers
print(z @ z.T)                          # cosine similarities'''
    parts: list[Part] = [
        Lines("use-commands", "Commands", text=explained(lines)),
        Lines("use-python", "Python", text=python),
    ]
    return Section("use", "How to use the model", "On the command line, and in Python.", parts)
