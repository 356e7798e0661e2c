"""The page of a fit: whether training helps on classes that no model had seen, class by class, and how to use its
model."""

import shlex
from typing import Any

from nearkin.comparison.gather import Gathered, Member, gather
from nearkin.config.parse import flatten
from nearkin.fitting.estimate import Over
from nearkin.fitting.fitted import Fitted
from nearkin.fitting.in_words import HEADINGS, WITHOUT, network_words
from nearkin.pages._base import Figure, Grid, Part, Section, Words
from nearkin.pages._fit_tables import class_chart, class_table, fold_table, means_chart
from nearkin.pages._members import data_name, network
from nearkin.pages._page import Fact
from nearkin.pages._pictures import Looks
from nearkin.pages._words import MAP_AT_R
from nearkin.runs.store import Run
from nearkin.units import POINTS, counted

SEARCHED = 12  # rows of a table that has a search field


def gathered_of(fitted: Fitted) -> Gathered:
    """The model, and the runs that its estimate rests on."""
    runs = [fitted.run, *fitted.chosen, *fitted.untrained]
    return gather([run.hash for run in runs], fitted.store.root)


def member_of(run: Run) -> Member:
    """A run by itself."""
    settings = flatten(run.stored)
    return Member({}, settings["train.seed"], settings.get("protocol.fold"), run)


def first_screen(fitted: Fitted) -> tuple[str, list[str], list[Fact]]:
    """Title, sentences and facts: does training help, which model is it now, whether to trust it, what to do next."""
    model = member_of(fitted.run)
    title = f"A model for {data_name(model)}: {result_words(fitted)}"
    lead = [fitted.verdict, *([MAP_AT_R] if fitted.plan.folds else [])]
    facts = [("Result", result_words(fitted), gains_words(fitted)), _model(fitted, model)]
    if fitted.plan.folds:
        facts.append(_trust(fitted))
    embed = f"nearkin embed {fitted.run.hash} IMAGES"
    return title, lead, [*facts, ("Next", embed, "gives an embedding for each image of a folder")]


def result_words(fitted: Fitted) -> str:
    """The verdict in a few words."""
    if not fitted.plan.folds:
        return "too few classes to say"
    if not fitted.chosen:
        return "nothing was trained"
    return "training helps here" if fitted.helps else "training does not help here"


def gains_words(fitted: Fitted) -> str:
    """What training gained in both metrics."""
    gains = {metric: fitted.gain(fitted.chosen, metric) for metric in HEADINGS} if fitted.chosen else {}
    words = [f"{HEADINGS[metric]} {_points(gain)}" for metric, gain in gains.items() if gain is not None]
    if not words:
        return "the model is the network as it was before training"
    return f"{' and '.join(words)}, against the same network {WITHOUT}; 95 % intervals over classes"


def _points(gain: Over) -> str:
    mean = f"{POINTS.text(gain.mean, 1, signed=True)} points"
    if gain.low is None or gain.high is None:
        return mean
    return f"{mean} ({POINTS.text(gain.low, 1, signed=True)} to {POINTS.text(gain.high, 1, signed=True)})"


def _model(fitted: Fitted, model: Member) -> Fact:
    classes = counted(fitted.classes, "class", "classes")
    if fitted.helps and fitted.method is not None:
        return (
            "The model",
            f"{fitted.method.name}, trained on all {classes}",
            f"Run {fitted.run.hash}: {network(model)}.",
        )
    return "The model", network_words(fitted), f"Run {fitted.run.hash}: {network(model)}."


def _trust(fitted: Fitted) -> Fact:
    size = round(fitted.classes / fitted.plan.folds)
    words = (
        f"Every class was tested once, about {size} of them at a time; among more classes values are lower. One "
        "training per fold: another one would end a little differently, and the interval does not say how much."
    )
    return "Can I trust it?", "no model was tested on a class that it had seen", words


def result_section(fitted: Fitted) -> Section | None:
    """The networks beside each other; None where nothing was tested."""
    if not fitted.plan.folds:
        return None
    (table,) = fitted.tables
    lead = "The networks that were tried, on classes that they had never seen."
    return Section("results", "Does training help?", lead, [Grid(table, "result")])


def class_section(fitted: Fitted) -> Section | None:
    """Every class: what training gained there."""
    table = class_table(fitted)
    if not table.rows:
        return None
    parts: list[Part] = [Figure(chart)] if (chart := class_chart(table)) is not None else []
    parts.append(Grid(table, "classes-grid", search=len(table) > SEARCHED, folded=bool(parts)))
    gains = [row["gain"] for row in table if row["gain"] is not None]
    lead = "Every class, tested once without having been trained on."
    if gains:
        up, down = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        lead = f"With training, MAP@R is higher in {counted(up, 'class', 'classes')} and lower in {down:,}."
    return Section("classes", "Class by class", lead, parts)


def choice_section(fitted: Fitted) -> Section | None:
    """The folds, what each chose, and what the model has of them."""
    if not fitted.plan.folds:
        return None
    return Section("choice", "How it was chosen", _choice_words(fitted), [*_left_out(fitted), Grid(fold_table(fitted))])


def _choice_words(fitted: Fitted) -> str:
    plan = fitted.plan
    words = (
        f"{counted(plan.folds, 'fold')} over classes: each part was tested by models that were trained on the others. "
    )
    if not plan.losses:
        return words + "There was no time to train."
    if plan.share:
        words += "Loss, epoch and blend were chosen in each fold on classes that were held out a second time. "
        last = "The model has the loss that was best there, and the medians of epochs and blends."
    else:
        words += "With so few classes none was held out to choose: loss, epochs and blend were given. "
        last = "The model has the first of the losses."
    return words + (last if fitted.helps else "The model is the network without training.")


def _left_out(fitted: Fitted) -> list[Part]:
    return [
        Words(f"{method.name} was left out: {method.error}", "warning") for method in fitted.methods if method.error
    ]


def pictures(fitted: Fitted, looks: Looks) -> list[Section]:
    """What the first fold finds and confuses: the model's kind of network beside the other."""
    if not fitted.untrained:
        return []
    plain = member_of(fitted.untrained[0])
    shown, twins = (member_of(fitted.chosen[0]), [plain]) if fitted.helps else (plain, [])
    sections = looks.of_run(shown, twins)
    side = fitted.by_class([shown.run], "recall@1")
    classes = counted(len(side.classes) if side is not None else 0, "class", "classes")
    seen = f"the network {WITHOUT}" if shown.untrained else "a model that was trained on the other classes"
    fold = f"fold {(shown.fold or 0) + 1} of {fitted.plan.folds}"
    sections[0].parts.insert(0, Words(f"The pictures are of the {classes} of {fold}, as {seen} sees them."))
    return sections


def first_charts(fitted: Fitted) -> list[Part]:
    """The networks as a picture."""
    return [Figure(means_chart(fitted))] if fitted.plan.folds else []


def command_of(fitted: Fitted) -> str:
    """The command that makes the same fit; empty where it is not known."""
    if not (asked := dict(fitted.asked)):
        return ""
    words: dict[str, Any] = dict(asked["words"])
    folder = [str(words.pop("data.root"))] if words.get("data.name") == "folder" and "data.root" in words else []
    if folder:
        del words["data.name"]
    given = [f"{key}={_value(value)}" for key, value in words.items()]
    losses = ["--losses", ",".join(asked["losses"])] if asked["losses"] else []
    time = ["--minutes", f"{asked['minutes']:g}", "--workers", str(asked["workers"])]
    return shlex.join(["nearkin", "fit", *folder, *given, *time, *losses])


def _value(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
