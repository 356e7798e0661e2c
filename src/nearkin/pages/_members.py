"""What a page says of stored runs: data, network and protocol, the choice of the epoch, and what is not stored."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearkin.comparison.compare import lacks
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import Method
from nearkin.errors import NearkinError
from nearkin.pages._words import called
from nearkin.registry import LOSSES
from nearkin.units import counted


def distinct(members: Iterable[Member]) -> list[Member]:
    """Each run once: one may stand in several cells of a study."""
    return list({member.run.hash: member for member in members}.values())


def final_of(member: Member) -> dict[str, Any]:
    """What its final.json holds: the choice of the epoch, and what training cost."""
    return member.run.read_json("final.json")


def method_of(member: Member) -> str:
    """What the study calls a run's method; else its loss."""
    return ", ".join(member.labels.values()) or str(member.settings["loss.name"])


def kind_words(method: Method) -> str:
    """What a row is: ranking, classification, or a network that was not trained on these images."""
    return method.kind if method.trained else untrained_words(method.members[0])


def untrained_words(member: Member) -> str:
    """How a network without training came by its weights."""
    return "untrained" if member.settings.get("model.weights") is None else "pretrained, not trained on your images"


def data_name(member: Member) -> str:
    """The data set of a run: its name; that of the folder where it is a folder of someone's own."""
    name, root = member.settings["data.name"], member.settings.get("data.root")
    return Path(root).name or name if root and name in ("folder", "csv") else name


def year_of(member: Member) -> int | None:
    """When the paper of its loss appeared."""
    name = str(member.settings.get("loss.name"))
    if member.untrained or name not in LOSSES:
        return None
    year = re.search(r"\b(19|20)\d\d\b", getattr(LOSSES[name], "paper", "") or "")
    return int(year[0]) if year else None


def network(member: Member) -> str:
    """Backbone, weights, size of the embedding and of the images."""
    words = member.settings
    weights = words.get("model.weights")
    weights = "random weights" if weights is None else f"weights {Path(str(weights)).name}"
    size = "pooled feature" if words["model.head"] == "none" else f"embedding size {words['model.dim']}"
    return f"{words['model.backbone']}, {weights}, {size}, {words['data.size']} px"


def protocol(member: Member) -> str:
    """Its name and settings, without the fold."""
    settings = {
        key.removeprefix("protocol."): value
        for key, value in member.settings.items()
        if key.startswith("protocol.") and key not in ("protocol.fold", "protocol.path")
    }
    name = settings.pop("name")
    words = ", ".join(f"{key} {value}" for key, value in settings.items() if value is not None)
    return f"{name} ({words})" if settings else name


def rule(final: dict[str, Any]) -> str:
    """How the epoch was chosen."""
    return final["rule"] + (f", by {final['select']}" if final.get("select") else "")


def split_words(final: dict[str, Any]) -> str:
    """How many images and classes trained, validated and tested."""
    return str(final.get("split", "")).partition("; split")[0]


def tallied(values: Sequence[str]) -> str:
    """What all have; of several, how many have which."""
    counts = Counter(values)
    if len(counts) == 1:
        return values[0]
    words = [f"{value} ({counted(n, 'run')})" for value, n in counts.most_common(4)]
    rest = len(counts) - len(words)
    return "; ".join(words) + (f"; and {rest} more" if rest > 0 else "")


def times_opened(gathered: Gathered, members: Iterable[Member]) -> int:
    """How often the test splits of these runs were opened in their store."""
    openings = gathered.store.openings()
    return sum(openings.get(split, 0) for split in {member.head["split_hash"] for member in members})


def stored_metrics(gathered: Gathered) -> list[str]:
    """The test metrics that every tested run has, in the order of the first one's result."""
    metrics = [member.run.metrics() for member in gathered.tested]
    return [name for name in (metrics[0] if metrics else {}) if all(name in stored for stored in metrics)]


def missing(gathered: Gathered, metrics: Iterable[str]) -> list[str]:
    """For each of these metrics that not all runs have whose data set it is for: the command that measures it."""
    words = {}
    for metric in metrics:
        on = [m for m in gathered.members if metric in gathered.data_metrics.get(m.settings["data.name"], (metric,))]
        words[metric] = _not_stored(replace(gathered, members=on), metric)
    return [f"{called(metric)} is {command}." for metric, command in words.items() if command is not None]


def check_stored(gathered: Gathered, metric: str) -> None:
    """A report computes no metric: it says which command does."""
    if words := _not_stored(gathered, metric):
        raise NearkinError(f"metric={metric}: {words}")


def _not_stored(gathered: Gathered, metric: str) -> str | None:
    """How many runs lack a metric, and the command that measures it; None where all have it."""
    lacking = sum(lacks(member, metric) for member in gathered.tested)
    if not lacking:
        return None
    name = gathered.name if gathered.axes else " ".join(member.run.hash for member in gathered.tested)
    return (
        f"not stored for {lacking} of {len(gathered.tested)} runs; `nearkin compare {name} --metric {metric}` "
        "measures it from their embeddings"
    )
