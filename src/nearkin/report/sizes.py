"""One setting that varies while all others stay: embedding size, backbone, p_switch; and the bars of the literature."""

from collections.abc import Iterable, Sequence
from typing import Any

from nearkin.comparison.gather import Member
from nearkin.comparison.method import kind_of
from nearkin.report.base import Chart, Part, Section, Table
from nearkin.report.material import Board, Material, called, interval_of, year_of

# setting -> (heading, settings that go with it and may differ)
VARIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "model.dim": ("embedding size", ()),
    "model.backbone": (
        "backbone",
        ("model.", "data.size", "data.resize", "data.crop", "data.keep", "train.lr", "recipe"),
    ),
    "regulariser.p_switch": ("p_switch", ()),
}
ALWAYS = (
    "train.seed",
    "protocol.fold",
    "train.device",
    "train.loaders",
    "train.curve",
    "data.root",
    "data.cache",
    "purpose",
)
KS = (1, 2, 4, 8)


def section(material: Material) -> Section | None:
    """None where no setting varies by itself and no recall is stored."""
    parts: list[Part] = []
    for board in material.boards:
        for key in VARIED:
            parts += _curve(material, board, key)
        parts += _rho_bars(material, board) + _recalls(material, board)
    if not parts:
        return None
    return Section(
        "settings", "Settings, as the literature draws them", "One setting at a time, all others equal.", parts
    )


def groups_of(members: Iterable[Member], key: str, beside: Sequence[str] = ()) -> dict[str, list[Member]]:
    """Members that differ in nothing but one setting (and what goes with it), by a name; those with one value only are
    left out."""
    found: dict[tuple[Any, ...], list[Member]] = {}
    for member in members:
        if member.untrained or member.settings.get(key) is None:
            continue
        rest = {
            k: v
            for k, v in member.settings.items()
            if k != key and k not in ALWAYS and not k.startswith(tuple(beside) or ("\0",))
        }
        found.setdefault((kind_of(member), *sorted((k, str(v)) for k, v in rest.items())), []).append(member)
    groups = [own for own in found.values() if len({str(m.settings[key]) for m in own}) > 1]
    names: dict[str, list[Member]] = {}
    for own in groups:
        name = _name(own)
        while name in names:
            name += " *"
        names[name] = own
    return names


def _name(members: list[Member]) -> str:
    """What the study calls all of them; else the loss."""
    first = members[0]
    common = [label for axis, label in first.labels.items() if all(m.labels.get(axis) == label for m in members)]
    loss = first.settings["loss.name"]
    miner = first.settings.get("miner.name")
    return ", ".join(common) or (f"{loss} + {miner}" if miner else loss)


def _curve(material: Material, board: Board, key: str) -> list[Part]:
    name, beside = VARIED[key]
    metric, rows = material.metric, []
    for label, members in groups_of(_members(board), key, beside).items():
        values = sorted({m.settings[key] for m in members}, key=lambda v: (isinstance(v, str), v))
        for value in values:
            found = material.interval([m for m in members if m.settings[key] == value], metric)
            if found is not None:
                rows.append([label, value, found.mean, found.low, found.high, found.n])
    if not rows:
        return []
    table = Table(f"{name.replace(' ', '-')}{board.suffix}", ["method", name, metric, "low", "high", "seeds"], rows)
    values = [v for v in table.column(name) if not isinstance(v, str)]
    return [
        Chart(
            f"by-{key.rpartition('.')[2].replace('_', '-')}{board.suffix}",
            f"{board.where}{called(metric)} over {name}",
            table,
            form="lines",
            x=name,
            by="method",
            **interval_of(metric),
            log=key == "model.dim" and len(values) > 2,
            more={"shown": 10},
            alt=f"{called(metric)} over {name}, {', '.join(map(str, dict.fromkeys(table.column(name))))}: "
            "mean and 95 % interval over seeds.",
        )
    ]


def _rho_bars(material: Material, board: Board) -> list[Part]:
    """Each loss with and without rho switching; p is the one with the best validation, where there is any."""
    metric, rows = material.metric, []
    groups: dict[tuple[Any, ...], list[Member]] = {}
    for member in _members(board):
        if not member.untrained and member.settings.get("regulariser.name") in (None, "rho"):
            rest = {k: v for k, v in member.settings.items() if not k.startswith("regulariser") and k not in ALWAYS}
            groups.setdefault(tuple(sorted((k, str(v)) for k, v in rest.items())), []).append(member)
    for members in groups.values():
        sides: dict[float, list[Member]] = {}
        for member in members:
            sides.setdefault(float(member.settings.get("regulariser.p_switch") or 0.0), []).append(member)
        if 0.0 not in sides or len(sides) < 2:
            continue
        chosen = _validated(material, {p: own for p, own in sides.items() if p > 0})
        for p in (0.0, *chosen):
            found = material.interval(sides[p], metric)
            if found is not None:
                rows.append(
                    [
                        _name(members),
                        "without" if p == 0 else "with rho switching" if len(chosen) == 1 else f"p_switch {p:g}",
                        p,
                        found.mean,
                        found.low,
                        found.high,
                    ]
                )
    if not rows:
        return []
    notes = ["p_switch is the one with the best mean on validation images, not on test images."]
    if any(str(row[1]).startswith("p_switch") for row in rows):
        notes = ["Without validation no p_switch can be chosen: there is one bar for each."]
    table = Table(f"rho-switching{board.suffix}", ["method", "regulariser", "p_switch", metric, "low", "high"], rows)
    return [
        Chart(
            f"rho-switching{board.suffix}",
            f"{board.where}With and without rho switching",
            table,
            form="bars",
            x="method",
            by="regulariser",
            **interval_of(metric),
            sideways=True,
            alt=f"Pairs of bars: {called(metric)} of each loss without and with rho switching, with 95 % intervals.",
            notes=notes,
        )
    ]


def _validated(material: Material, sides: dict[float, list[Member]]) -> list[float]:
    """The p with the best validation; all of them where none was validated."""
    key = f"validation {material.gathered.select}"
    found = {p: material.interval(own, key) for p, own in sides.items()}
    known = {p: each.mean for p, each in found.items() if each is not None}
    return [max(known, key=lambda p: known[p])] if known else sorted(sides)


def _recalls(material: Material, board: Board) -> list[Part]:
    """Recall@1, 2, 4, 8 of every method, in the order in which their papers appeared."""
    stored = set(material.stored_metrics())
    ks = [k for k in KS if f"recall@{k}" in stored]
    dated = [
        (year, place, method)
        for place, method in enumerate(board.methods)
        if method.kind != "untrained" and (year := year_of(method.members[0])) is not None
    ]
    if len(ks) < 2 or len(dated) < 2:
        return []
    rows = []
    for year, _, method in sorted(dated, key=lambda each: each[:2]):
        kept = [m for m in method.members if m.seed in method.values]
        for k in ks:
            found = material.interval(kept, f"recall@{k}")
            if found is not None:
                rows.append([f"{method.name} ({year})", year, f"Recall@{k}", found.mean, found.low, found.high])
    table = Table(f"recall-by-year{board.suffix}", ["method", "year", "metric", "recall", "low", "high"], rows)
    return [
        Chart(
            f"recall-by-year{board.suffix}",
            f"{board.where}Recall@k in order of publication",
            table,
            form="bars",
            x="method",
            y="recall",
            by="metric",
            low="low",
            high="high",
            percent=("recall", "low", "high"),
            y_title="Recall@k %",
            sideways=True,
            alt="Recall at " + ", ".join(map(str, ks)) + " of every method, oldest paper first.",
        )
    ]


def _members(board: Board) -> list[Member]:
    return [member for method in board.methods for member in method.members if member.done]
