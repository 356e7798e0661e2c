"""How to get the same numbers: commands, the study's file, settings, hashes and versions."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import yaml

from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.pages._base import Grid, Lines, Part, Section
from nearkin.pages._material import Material
from nearkin.pages._members import distinct, final_of
from nearkin.pages._scrub import Scrubber
from nearkin.present import Column, Table
from nearkin.runs.listing import describe
from nearkin.units import SECONDS


def section(material: Material, scrub: Scrubber) -> Section:
    """Commands first, then everything that decides a result; of a study or of a single run."""
    gathered, file = material.gathered, material.gathered.file
    parts: list[Part] = [Lines("command", "Commands", text=_commands(material))]
    if file:
        parts.append(Lines("study-file", "The study's file", text=scrub(file), folded=len(file) > 600))
    parts += [*_settings(gathered, scrub), _hashes(gathered), *_versions(gathered)]
    lead = "The same settings, data and split give the same run; its hash is made of them."
    return Section("reproduce", "How to reproduce it", lead, parts)


def _commands(material: Material) -> str:
    gathered, name = material.gathered, material.gathered.name
    methods = [method for board in material.boards[:1] for method in board.trained or board.methods]
    best = (methods[0].members if methods else gathered.members)[0].run.hash
    lines = [
        (material.made, "makes all of it; what is stored is not trained again"),
        (f"nearkin runs reproduce {best}", "trains one run again and compares"),
        (material.command, "writes this page"),
    ]
    if gathered.axes:
        lines = [
            (f"nearkin study {name}.yaml", "the file below; what is stored is not trained again"),
            (f"nearkin compare {name} --metric {material.metric}", "every difference and its verdict"),
            *lines,
        ]
    return explained(lines)


def explained(lines: Sequence[tuple[str, str]]) -> str:
    """Commands below each other, with what they do beside them."""
    commands = [(command, about) for command, about in lines if command]
    width = max(len(command) for command, _ in commands)
    return "\n".join(f"{command:{width}}   # {about}" for command, about in commands)


def _settings(gathered: Gathered, scrub: Scrubber) -> list[Part]:
    """What all runs share once, and for each run what differs: together the whole spec of every run."""
    members = distinct(gathered.members)
    keys = list(dict.fromkeys(key for member in members for key in member.settings))
    differ = [key for key in keys if len({json.dumps(m.settings.get(key), default=str) for m in members}) > 1]
    shared = {key: members[0].settings[key] for key in keys if key not in differ and key in members[0].settings}
    text = yaml.safe_dump({k: _scrubbed(v, scrub) for k, v in shared.items()}, sort_keys=False, allow_unicode=True)
    title = "The settings of the run" if len(members) == 1 else "Settings that all runs share"
    parts: list[Part] = [Lines("spec", title, text=text, folded=True)]
    if differ:
        rows = [[m.run.hash, *(_scrubbed(m.settings.get(key), scrub) for key in differ)] for m in members]
        table = Table("settings", ["run", *differ], rows, "Settings that differ, run by run")
        parts.append(Grid(table, "spec-differences", folded=True, search=True))
    return parts


def _scrubbed(value: Any, scrub: Scrubber) -> Any:
    if isinstance(value, str):
        return scrub(value)
    return value if isinstance(value, int | float | None) else scrub(json.dumps(value, default=str))


def _hashes(gathered: Gathered) -> Grid:
    rows = []
    for member in distinct(gathered.members):
        seconds = final_of(member).get("seconds") if member.done else None
        label = ", ".join(member.labels.values()) or describe(
            {k: v for k, v in member.head["spec"].items() if k in ("loss", "miner")}
        )
        place = [label or member.settings["loss.name"], member.seed, member.fold, member.run.hash]
        hashes = [member.head["data_hash"], member.head["split_hash"]]
        rows.append([*place, *hashes, "tested" if member.done else "no result", seconds])
    time = Column("seconds", "training time", SECONDS)
    columns: list[Column | str] = ["method", "seed", "fold", "run", "data hash", "split hash", "state", time]
    table = Table("runs", columns, rows, "Runs, data and splits by their hashes")
    return Grid(table, "run-hashes", folded=len(rows) > 8, search=True)


def _versions(gathered: Gathered) -> list[Part]:
    """Of every kind of session that worked on the runs; no names of machines or users, no folders."""
    counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for member in distinct(gathered.members):
        try:
            session = member.run.read_json("environment.json")
        except NearkinError:
            continue
        versions = {name: str(value) for name, value in session.get("versions", {}).items() if value}
        commit = (session.get("commit") or "–")[:12]
        machine = {key: str(session.get(key, "")) for key in ("cpu", "threads")}
        kind = {"python": str(session.get("python", "")), **versions, "commit": commit, **machine}
        counts[tuple(kind.items())] += 1
    if not counts:
        return []
    header = ["runs", *dict.fromkeys(key for kind in counts for key, _ in kind)]
    rows = [[n, *(dict(kind).get(key) for key in header[1:])] for kind, n in counts.most_common()]
    return [Grid(Table("versions", header, rows, "Versions and machines"), folded=len(rows) > 6)]
