"""The page of one run: its honest number beside the untrained one, curves, classes, and how to use its model."""

from collections import Counter
from typing import Any

from nearkin.comparison.gather import Gathered, Member
from nearkin.evaluation.metrics.base import difference_unit, metric_of, unit_of
from nearkin.pages._base import Figure, Grid, Lines, Part, Section, Words
from nearkin.pages._first import trust_words
from nearkin.pages._members import data_name, final_of, network, protocol, rule, split_words, untrained_words
from nearkin.pages._page import Fact
from nearkin.pages._reproduce import explained
from nearkin.pages._words import about, called, metric_column, value_words
from nearkin.present import Column, Table
from nearkin.present import Lines as Curves
from nearkin.runs.listing import describe
from nearkin.runs.tested import values_per_query
from nearkin.units import COUNT, GAP, SECONDS, counted

MOST_CLASSES = 500  # rows that the page shows; all are in the download
GROWS = "A larger gallery has more images to be mistaken for: lower test values alone are no sign of overfitting."


def first_screen(
    member: Member, metric: str, twins: dict[str, Member], openings: int
) -> tuple[str, list[str], list[Fact]]:
    """Title, sentences and facts: what it is, how good, what training gave, whether to trust it, what to do next."""
    value, run = member.value(metric), member.run
    plain = "untrained network" if member.settings.get("model.weights") is None else "pretrained network"
    title = f"{plain if member.untrained else member.settings['loss.name']} on {data_name(member)}"
    unseen = "images that training never saw"
    if member.settings["protocol.name"] != "within":
        unseen = "images of classes that training never saw"
    queries = counted(run.result["test_n"], "query", "queries")
    lead = [f"Run {run.hash}: {network(member)}. Tested on {queries}, {unseen}.", about(metric)]
    score = f"{value_words(metric, value)} {called(metric)}"
    photos, recall = photo_words(member), value_words("recall@1", member.value("recall@1"))
    one = "one seed: no interval, another seed would give another number"
    result = ("Result", photos, f"Recall@1 {recall}, {score}; {one}") if photos else ("Result", score, one)
    locked = f"The test labels were opened {counted(openings, 'time')} in this store."
    trust = trust_words([] if member.untrained else [final_of(member)], locked)
    embed = ("Next", f"nearkin embed {run.hash} IMAGES", "gives an embedding for each image of a folder")
    return title, lead, [result, *_without(member, metric, twins), trust, embed]


def photo_words(member: Member) -> str:
    """The share of queries whose nearest neighbour is right, in words; empty where it is not stored."""
    recall = member.value("recall@1")
    if recall is None:
        return ""
    share = f"more than {int(100 * recall)}" if 0.995 <= recall < 1 else f"{round(100 * recall)}"
    return f"{share} of 100 photos find the right class first"


def _without(member: Member, metric: str, twins: dict[str, Member]) -> list[Fact]:
    """What the same network gives on the same images without training."""
    facts = []
    for name, twin in twins.items():
        if (other := twin.value(metric)) is not None:
            words = f"{name}, {untrained_words(twin)}; run {twin.run.hash}{_gain(member, twin, metric)}"
            facts.append(("Without training", f"{value_words(metric, other)} {called(metric)}", words))
    if not twins and not member.untrained:
        facts.append(("Without training", "not stored", "the command is in the section on the use of the model"))
    return facts


def _gain(member: Member, twin: Member, metric: str) -> str:
    """What training gave; runs of different seeds are not subtracted."""
    value, other = member.value(metric), twin.value(metric)
    if value is None or other is None:
        return ""
    if member.seed != twin.seed:
        return f"; its seed is {twin.seed}, not {member.seed}: no difference is taken"
    points = " points" if metric_of(metric).is_share else ""
    return f"; training gave {difference_unit(metric).text(value - other, signed=True)}{points}"


def result_section(member: Member, twins: dict[str, Member]) -> Section:
    """All metrics, beside the untrained ones."""
    final = final_of(member)
    rows = [
        [called(name), member.value(name), *(twin.value(name) for twin in twins.values()), unit_of(name).name, name]
        for name in member.run.metrics()
    ]
    values = [Column("this run", unit="unit")]
    values += [Column(name, f"{name}, {untrained_words(twin)}", "unit") for name, twin in twins.items()]
    notes = [
        "Shares in per cent, means over the queries for which the metric is defined.",
        "One run has no interval: train other seeds, as with seed=1.",
    ]
    table = Table("metrics", [Column("name", "metric"), *values, "unit", Column("metric", "its name in files")], rows)
    table.title, table.notes = "Test metrics", notes
    facts = {
        "data": f"{data_name(member)}, data hash {member.head['data_hash']}",
        "images and classes": split_words(final) or GAP,
        "protocol": protocol(member),
        "choice of the epoch": rule(final),
        "network": network(member),
        "epochs trained": final["epochs_trained"],
        "steps": final.get("steps"),
        "training time": None if final.get("seconds") is None else SECONDS.text(final["seconds"]),
        "settings, where they differ from the defaults": describe(member.head["spec"]),
    }
    how = Table("facts", ["what", "value"], [list(fact) for fact in facts.items()], "How it was made")
    parts: list[Part] = [Grid(table, "result"), Grid(how)]
    if not final["validation"] and not member.untrained:
        parts.insert(0, Words("There were no validation images: the epoch is the last one, by rule.", "warning"))
    lead = "What the test gave, and what a network without training gives on the same images."
    return Section("results", "The result", lead, parts)


def curve_section(member: Member, metric: str, select: str) -> Section | None:
    """Validation, test where it was kept, and the loss; None for an untrained network."""
    points, final, parts = member.run.curve(), final_of(member), list[Part]()
    names = [name for name in dict.fromkeys((select, metric)) if metric_of(name).is_share == metric_of(select).is_share]
    curves = [("validation", select), *(("test", name) for name in names)]  # of one unit: they share an axis
    rows: list[list[Any]] = [
        [f"{split} {called(name)}", point["epoch"], point[f"{split}.{name}"]]
        for split, name in curves
        for point in points
        if point.get(f"{split}.{name}") is not None
    ]
    if rows:
        splits = {str(row[0]).split()[0]: None for row in rows}
        notes = ["The test curve was joined after the run was final: it chose nothing."] if "test" in splits else []
        if "validation" in splits and split_words(final):
            notes.append(f"{split_words(final).capitalize()}. {GROWS}")
        chart = Curves(
            name="curve",
            title=" and ".join(splits).capitalize(),
            table=Table("curve", ["curve", "epoch", Column("value", unit=unit_of(select))], rows),
            x="epoch",
            y="value",
            by="curve",
            y_title=unit_of(select).mark or "value",
            alt=f"The chosen epoch is {final['epoch']} of {final['epochs_trained']}.",
            notes=notes,
        )
        parts.append(Figure(chart))
    losses = [[point["epoch"], point["loss"]] for point in points if point.get("loss") is not None]
    if losses:
        table = Table("loss", ["epoch", "loss"], losses)
        alt = "Mean loss of the steps of each epoch."
        parts.append(Figure(Curves(name="loss", title="Training loss", table=table, x="epoch", y="loss", alt=alt)))
    return Section("training", "Training", "How the curves went, epoch by epoch.", parts) if parts else None


def class_section(member: Member, metric: str) -> Section | None:
    """Every test class by itself; None where values per query are not stored."""
    table = class_table(member, metric)
    if table is None:
        return None
    if len(table) > MOST_CLASSES:
        table.notes = [f"The {MOST_CLASSES} weakest of {len(table):,} classes."]
        table.rows = table.rows[:MOST_CLASSES]
    grid = Grid(table, "classes-grid", search=True)
    return Section("classes", "Class by class", "The classes it finds worst come first.", [grid])


def class_table(member: Member, metric: str) -> Table | None:
    """Class, number of queries and mean metrics, the weakest first."""
    names = dict.fromkeys((metric, "recall@1", "map_at_r", "r_precision"))
    grouped = {name: classes for name in names if (classes := member.by_class(name)) is not None}
    if not grouped:
        return None
    means = [dict(zip(classes.classes, classes.means.tolist(), strict=True)) for classes in grouped.values()]
    first, sign = next(iter(grouped)), metric_of(next(iter(grouped))).sign or 1
    labels, _ = values_per_query(member.run, first) or ([], [])
    count = Counter(map(str, labels))
    order = sorted(sorted(count), key=lambda label: sign * means[0].get(label, sign * float("inf")))
    rows = [[label, count[label], *(mean.get(label) for mean in means)] for label in order]
    columns: list[Column | str] = ["class", Column("queries", unit=COUNT), *map(metric_column, grouped)]
    return Table("classes", columns, rows)


def use_section(member: Member, gathered: Gathered, twins: dict[str, Member]) -> Section:
    """Commands and Python lines."""
    name = member.run.hash
    lines = [
        (f"nearkin embed {name} IMAGES -o emb.npz", "a folder of images, or one image"),
        ("nearkin evaluate emb.npz", "measures it, where images lie in class folders"),
    ]
    if member.run.testable:
        lines.append((f"nearkin test {name} --metrics nmi,recall@100", "more metrics, without training"))
    if member.run.testable and not twins and not member.untrained:
        lines.append(("nearkin train SETTINGS epochs=0 model.head=none", "the settings below, without training"))
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
