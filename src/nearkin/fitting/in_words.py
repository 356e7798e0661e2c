"""A fit in words: does training help, which networks were tried, which model is it now."""

from typing import TYPE_CHECKING, Any

from nearkin.fitting._plan import LEAST_CLASSES
from nearkin.fitting.estimate import Over, gain, worth
from nearkin.present import Column, Table
from nearkin.statistics.unit import ByClass
from nearkin.units import POINTS, SECONDS, SHARE, counted

if TYPE_CHECKING:
    from nearkin.fitting.fitted import Fitted

WITHOUT = "without training"
HEADINGS = {"map_at_r": "MAP@R", "recall@1": "Recall@1"}


def verdict(fitted: "Fitted") -> str:
    """The verdict in one or two sentences."""
    plan, network = fitted.plan, network_words(fitted)
    if not plan.folds:
        lone = fitted.classes - fitted.searchable
        what = counted(fitted.classes, "class", "classes") + (f", {lone} of them with one image" if lone else "")
        return (
            f"{what}: too few to hold some out (at least {LEAST_CLASSES} with two images), so nobody could say "
            f"whether training helps. The model is {network}."
        )
    parts = []
    for metric in ("recall@1", "map_at_r"):
        before = fitted.by_class(fitted.untrained, metric)
        if before is None:
            continue
        trained = fitted.by_class(fitted.chosen, metric)
        words = f"{HEADINGS[metric]} {_percent(worth(before if trained is None else trained))}"
        parts.append(words if trained is None else f"{words}; {WITHOUT} {SHARE.text(worth(before).mean, digits=1)} %")
    at_a_time = counted(round(fitted.classes / plan.folds), "class", "classes")
    seen = f"On classes it has never seen, {at_a_time} at a time: {'. '.join(parts)}."
    if not plan.losses:
        return f"{seen} There was no time to train: take {network}, or give it more minutes."
    if not fitted.chosen:
        return f"{seen} No loss could be trained in all folds: take {network}."
    if fitted.helps:
        return f"{seen} For this training: it helps here."
    return f"{seen} Training does not help here: take {network}."


def network_words(fitted: "Fitted") -> str:
    """What the network is without training."""
    return "the pretrained network" if fitted.pretrained else "the untrained network, whose weights are random"


def table(fitted: "Fitted") -> Table:
    """One row per network, the untrained one last: what it gained first, which stays on a narrow screen."""
    rows: list[list[Any]] = []
    best = None if fitted.method is None else fitted.by_class(fitted.method.runs, "map_at_r")
    ordered = sorted(fitted.trained, key=lambda method: method is not fitted.method)
    for name, runs in [*((method.name, method.runs) for method in ordered), (WITHOUT, fitted.untrained)]:
        sides = {metric: fitted.by_class(runs, metric) for metric in HEADINGS}
        gained = fitted.gain(runs, "map_at_r") if name != WITHOUT else None
        values = [gained, *(None if side is None else worth(side) for side in sides.values())]
        first = best is None or (fitted.method is not None and name == fitted.method.name)
        beside = None if first else _beside(sides["map_at_r"], best)
        rows.append([name, *(end for value in values for end in _ends(value)), beside])
    columns = [
        "network",
        Column("gain", "MAP@R gained, points", POINTS, digits=1, signed=True),
        *_span("gain", POINTS, signed=True),
    ]
    for metric, heading in HEADINGS.items():
        key = metric.replace("@", "_")
        columns += [Column(key, heading, SHARE, digits=1), *_span(key, SHARE)]
    columns.append(Column("tied", "beside the first"))
    title = f"{fitted.plan.folds} folds over {fitted.classes} classes"
    return Table("fit", columns, rows, title, _notes(fitted))


def model(fitted: "Fitted") -> str:
    """What the model is, where, and how long it took."""
    what = network_words(fitted)
    if fitted.helps and fitted.method is not None:
        what = f"trained on all classes with {fitted.method.name}"
    took = f"; {SECONDS.text(fitted.seconds)}" if fitted.seconds else ""
    return f"the model: {fitted.run.path} ({what}{took})"


def _span(key: str, unit: Any, **looks: Any) -> list[Any]:
    return [Column(f"{key}_low", "95 % interval", unit, digits=1, to=f"{key}_high", **looks), f"{key}_high"]


def _ends(value: Over | None) -> list[float | None]:
    return [None] * 3 if value is None else [value.mean, value.low, value.high]


def _notes(fitted: "Fitted") -> list[str]:
    notes = [
        "every class was tested once, by models that never saw it, in a gallery of the classes of its fold; "
        "intervals are over classes, for one training per fold"
    ]
    if fitted.plan.share:
        notes.append("loss, epoch and blend were chosen in each fold on classes held out for it, never by this test")
    if fitted.plan.cut != "none":
        notes.append(f"the part of the network behind {fitted.plan.cut} was trained; with more minutes, all of it")
    return notes + [f"{method.name}: {method.error}" for method in fitted.methods if method.error]


def _percent(value: Over) -> str:
    mean = SHARE.text(value.mean, digits=1)
    if value.low is None or value.high is None:
        return f"{mean} %"
    return f"{mean} % ({SHARE.text(value.low, digits=1)} to {SHARE.text(value.high, digits=1)})"


def _beside(side: ByClass | None, best: ByClass | None) -> str | None:
    """How a network stands beside the first: whether other classes might turn their order round."""
    if side is None or best is None:
        return None
    difference = gain(side, best)
    if difference.low is None or difference.high is None:
        return "tied" if difference.mean == 0 else None
    return "tied" if difference.low <= 0 <= difference.high else "better" if difference.low > 0 else "worse"
