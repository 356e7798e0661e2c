"""What was compared and how: data, protocol, choice of the epoch, budgets, and how often the test split was opened."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from nearkin.comparison.gather import Member
from nearkin.errors import some
from nearkin.evaluation.metrics.base import metric_of
from nearkin.report.base import Column, Grid, Part, Section, Table, Words
from nearkin.report.leaderboard import lead_words
from nearkin.report.material import Board, Material, called, shown_metric, unit
from nearkin.studies.budgets import BUDGET, budget_of
from nearkin.studies.readings import PICKED, READINGS

MILD = ("values are means over",)  # notes that explain; all others warn


def section(material: Material) -> Section:
    """Facts of every data set, warnings in plain words, budgets."""
    parts: list[Part] = [*_warnings(material), _facts(material)]
    parts += [part for board in material.boards for part in _budgets(board)]
    lead = "Fair is: the same images, the same choice of the epoch, and the same budget for every row."
    return Section("overview", "What was compared, and how", lead, parts)


def _warnings(material: Material) -> list[Part]:
    found: list[Part] = []
    for board in material.boards:
        for note in dict.fromkeys(board.comparison.notes):
            tone = "plain" if note.startswith(MILD) else "warning"
            found.append(Words(f"{board.where}{note[0].upper()}{note[1:]}.", tone))
    picked = [label for name in material.gathered.readings if PICKED in (label := READINGS[name][0])]
    if picked:
        found.append(
            Words(
                f"This study also reads epochs that were {PICKED}. They are no results: the leaderboard has none.",
                "warning",
            )
        )
    unvalidated = [m for m in material.trained if not material.record(m).final["validation"]]
    if unvalidated:
        n = len(unvalidated)
        found.append(
            Words(
                f"{n} of {len(material.trained)} trained runs had no validation images: their epoch is the last.",
                "warning",
            )
        )
    if not any(isinstance(part, Words) and part.tone == "warning" for part in found):
        found.insert(
            0,
            Words(
                "All trained rows had equal budgets, seeds and rules, and no epoch was picked on test images."
            ),
        )
    return found


def _facts(material: Material) -> Grid:
    openings = material.gathered.store.openings()
    rows: list[list[Any]] = []
    for board in material.boards:
        members = list({m.run.hash: m for method in board.methods for m in method.members if m.done}.values())
        records = [material.record(m) for m in members]
        trained = [r for r in records if not r.member.untrained] or records
        splits = {m.head["split_hash"] for m in members}
        times = sum(openings.get(split, 0) for split in splits)
        told = {
            "metric": _about(material.metric),
            "data": f"{board.data}, data hash {members[0].head['data_hash']}",
            "images and classes": common([str(r.final.get("split", "–")).partition("; split")[0] for r in trained]),
            "protocol": common([protocol(r.member) for r in trained]),
            "choice of the epoch": common([rule(r.final) for r in trained]),
            "networks": common([network(r.member) for r in trained]),
            "runs": f"{len(members)} tested, {len({m.seed for m in members})} seeds"
            + (f", {folds} folds" if (folds := len({m.fold for m in members if m.fold is not None})) else ""),
            "test queries": common([f"{r.result['test_n']:,}" for r in records]),
            "test split": f"{some(sorted(splits), 3)}: opened {times:,} times in this store",
        }
        rows += [[board.data, what, value] for what, value in told.items()]
    several = len(material.boards) > 1
    table = Table("overview", ["data", "what", "value"], rows)
    columns = [Column("data"), Column("what"), Column("value")] if several else [Column("what"), Column("value")]
    notes = [
        "Every opening of the test labels is noted, by whichever command. Each run's own test is one; the more there "
        "are, the more "
        "the test images have been looked at."
    ]
    return Grid("overview-facts", "", table, columns=columns, notes=notes)


def _about(metric: str) -> str:
    """A metric in a sentence: the first of its description."""
    text = " ".join((metric_of(metric).__doc__ or "").strip().split("\n\n")[0].split())
    words = re.split(r"(?<=\))\.\s|\.\s+(?=[A-Z])", text)[0].rstrip(".")
    return words if words.startswith(called(metric).partition("@")[0]) else f"{called(metric)}: {words}"


def opened(material: Material) -> tuple[int, int]:
    """How often the test splits of these runs were opened, and how many runs there are."""
    openings = material.gathered.store.openings()
    splits = {m.head["split_hash"] for m in material.gathered.tested}
    return sum(openings.get(split, 0) for split in splits), len({m.run.hash for m in material.gathered.tested})


def _budgets(board: Board) -> list[Part]:
    """What is equal in all trained rows, as a sentence; the rest as a table."""
    rows = []
    for method in board.methods:
        runs = [m.run for m in method.members if m.done and not m.untrained]
        folds, trials = len({m.fold for m in method.members}), max((m.trials for m in method.members), default=0)
        given = budget_of(runs, len(method.values), folds, trials=trials) if runs else {}
        rows.append([method.name, *(given.get(key) for key in BUDGET)])
    table = Table(f"budgets{board.suffix}", ["method", *BUDGET], rows)
    given_to = [row for row in table.records() if row["network"] is not None]
    equal = [key for key in BUDGET if len({row[key] for row in given_to}) == 1]
    told: list[Part] = []
    if given_to and equal:
        words = "; ".join(f"{key} {given_to[0][key]}" for key in equal)
        told.append(Words(f"{board.where}Equal in all trained rows: {words}."))
    grid = Grid(
        f"budgets{board.suffix}",
        f"{board.where}What each row was given",
        table,
        columns=[Column(name) for name in table.header if name not in equal],
        folded=len(rows) > 6 or len(equal) == len(BUDGET),
        notes=["Untrained networks were given nothing. Trials are runs that chose settings on validation images."],
    )
    return [*told, grid]


def first_screen(material: Material) -> tuple[str, list[str], list[tuple[str, str, str]]]:
    """Title, sentences and figures that answer: what is this, who won, is it real, what next."""
    gathered, boards = material.gathered, material.boards
    trained = {method.name for board in boards for method in board.comparison.trained}
    data = " and ".join(board.data for board in boards)
    title = (
        f"{gathered.name}: {len(trained)} methods on {data}"
        if gathered.axes
        else f"{len(gathered.tested)} runs on {data}"
    )
    seeds = Counter(len(method.values) for board in boards for method in board.comparison.trained)
    often = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    unseen = (
        "tested on images of classes that training never saw"
        if _unseen(material)
        else "tested on images that training never saw"
    )
    lead = [
        f"{_some_methods(len(trained))} of learning an image-retrieval embedding, {unseen}; {often} "
        f"seed{'s' if often != '1' else ''} each, compared by {called(material.metric)}."
    ]
    if gathered.twin:
        lead.append(f"It repeats a published table in its own way: {gathered.twin}.")
    facts = []
    for board in boards:
        name, words = lead_words(material, board)
        facts.append((f"{board.where}highest mean", name, words))
        facts += _untrained(material, board)
    times, runs = opened(material)
    rules = dict.fromkeys(material.record(m).final["rule"] for m in material.trained)
    facts.append(
        (
            "is it real?",
            f"epoch: {'; '.join(rules) or 'untrained networks only'}",
            f"test labels stayed locked until then; they were opened {times:,} times in this store, for these {runs} "
            "runs and any others",
        )
    )
    best = (boards[0].comparison.trained or boards[0].methods)[0].members[0].run.hash
    facts.append(
        (
            "what next?",
            f"nearkin report {best}",
            "looks into one run of the first row: its neighbours, its errors, and how to use its model",
        )
    )
    return title, lead, facts


def _some_methods(n: int) -> str:
    return "One way" if n == 1 else f"{n} ways"


def _unseen(material: Material) -> bool:
    return all(m.settings["protocol.name"] != "within" for m in material.gathered.tested)


def _untrained(material: Material, board: Board) -> list[tuple[str, str, str]]:
    found = [m for m in board.methods if m.kind == "untrained" and m.interval is not None]
    trained = [m for m in board.comparison.trained if m.interval is not None]
    if not found or not trained:
        return []
    best = found[0]
    assert best.interval is not None
    beaten = [m for m in trained if board.methods.index(m) > board.methods.index(best)]
    words = "without any training: what is above it was learned"
    if beaten:
        words = f"{len(beaten)} of {len(trained)} trained methods are below it"
    return [
        (
            f"{board.where}untrained network",
            f"{shown_metric(material.metric, best.interval.mean)} {unit(material.metric)}",
            f"{best.name}, {words}",
        )
    ]


def protocol(member: Member) -> str:
    """Its name and settings, without the fold."""
    own = {
        k.partition(".")[2]: v
        for k, v in member.settings.items()
        if k.startswith("protocol.") and k not in ("protocol.fold", "protocol.path")
    }
    name = own.pop("name")
    return name + (f" ({', '.join(f'{k} {v}' for k, v in own.items() if v is not None)})" if own else "")


def rule(final: dict[str, Any]) -> str:
    """How the epoch was chosen."""
    return final["rule"] + (f", by {final['select']}" if final.get("select") else "")


def network(member: Member) -> str:
    """Backbone, weights, size of the embedding and of the images."""
    words = member.settings
    weights = (
        "random weights" if words["model.weights"] is None else f"weights {Path(str(words['model.weights'])).name}"
    )
    size = "pooled feature" if words["model.head"] == "none" else f"embedding size {words['model.dim']}"
    return f"{words['model.backbone']}, {weights}, {size}, {words['data.size']} px"


def common(values: list[str]) -> str:
    """What all have; of several, how many have which."""
    counts = Counter(values)
    if len(counts) == 1:
        return values[0]
    told = [f"{value} ({n} runs)" for value, n in counts.most_common(4)]
    rest = len(counts) - len(told)
    return "; ".join(told) + (f"; and {rest} more" if rest > 0 else "")
