"""How to get the same numbers: commands, the study's file, settings, hashes and versions."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import yaml

from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.pages.base import Grid, Lines, Part, Section, Table
from nearkin.pages.material import Material, final_of
from nearkin.pages.scrub import Scrubber
from nearkin.runs.listing import describe

NOT_SETTINGS = ("train.seed", "protocol.fold")


def section(material: Material, scrub: Scrubber) -> Section:
    """Commands first, then everything that decides a result."""
    gathered = material.gathered
    parts: list[Part] = [Lines("command", "Commands", text=_commands(material))]
    if gathered.file:
        parts.append(
            Lines("study-file", "The study's file", text=scrub(gathered.file), folded=len(gathered.file) > 600)
        )
    parts += [*_settings(gathered, scrub), _hashes(material), *_versions(gathered)]
    return Section(
        "reproduce",
        "How to reproduce it",
        "The same settings, data and split give the same run; its hash is made of them.",
        parts,
    )


def run_section(material: Material, scrub: Scrubber) -> Section:
    """The same of a single run."""
    name = material.gathered.members[0].run.hash
    lines = [(f"nearkin reproduce {name}", "trains it again and compares"), (material.command, "writes this page")]
    parts: list[Part] = [Lines("command", "Commands", text=explained(lines))]
    parts += [*_settings(material.gathered, scrub), _hashes(material), *_versions(material.gathered)]
    return Section(
        "reproduce",
        "How to reproduce it",
        "The same settings, data and split give the same run; its hash is made of them.",
        parts,
    )


def _commands(material: Material) -> str:
    gathered, name = material.gathered, material.gathered.name
    best = (material.boards[0].comparison.trained or material.boards[0].methods)[0].members[0].run.hash
    lines = [(f"nearkin reproduce {best}", "trains one run again and compares"), (material.command, "writes this page")]
    if gathered.axes:
        lines = [
            (f"nearkin study {name}.yaml", "the file below; what is stored is not trained again"),
            (f"nearkin compare {name} --metric {material.metric}", "every difference and its verdict"),
            *lines,
        ]
    return explained(lines)


def explained(lines: Sequence[tuple[str, str]]) -> str:
    """Commands below each other, with what they do beside them."""
    known = [(command, about) for command, about in lines if command]
    width = max(len(command) for command, _ in known)
    return "\n".join(f"{command:{width}}   # {about}" for command, about in known)


def _settings(gathered: Gathered, scrub: Scrubber) -> list[Part]:
    """What all runs share once, and for each run what differs: together the whole spec of every run."""
    members = list({m.run.hash: m for m in gathered.members}.values())
    keys = list(dict.fromkeys(key for member in members for key in member.settings))
    differ = [key for key in keys if len({json.dumps(m.settings.get(key), default=str) for m in members}) > 1]
    shared = {key: members[0].settings[key] for key in keys if key not in differ and key in members[0].settings}
    text = yaml.safe_dump({k: _scrubbed(v, scrub) for k, v in shared.items()}, sort_keys=False, allow_unicode=True)
    title = "The settings of the run" if len(members) == 1 else "Settings that all runs share"
    parts: list[Part] = [Lines("spec", title, text=text, folded=True)]
    if differ:
        rows = [[m.run.hash, *(_scrubbed(m.settings.get(key), scrub) for key in differ)] for m in members]
        parts.append(
            Grid(
                "spec-differences",
                "Settings that differ, run by run",
                Table("settings", ["run", *differ], rows),
                folded=True,
                search=True,
            )
        )
    return parts


def _scrubbed(value: Any, scrub: Scrubber) -> Any:
    if isinstance(value, str):
        return scrub(value)
    return value if isinstance(value, int | float | None) else scrub(json.dumps(value, default=str))


def _hashes(material: Material) -> Grid:
    rows = []
    for member in {m.run.hash: m for m in material.gathered.members}.values():
        seconds = final_of(member).get("seconds") if member.done else None
        label = ", ".join(member.labels.values()) or describe(
            {k: v for k, v in member.head["spec"].items() if k in ("loss", "miner")}
        )
        rows.append(
            [
                label or member.settings["loss.name"],
                member.seed,
                member.fold,
                member.run.hash,
                member.head["data_hash"],
                member.head["split_hash"],
                "tested" if member.done else "no result",
                seconds,
            ]
        )
    table = Table("runs", ["method", "seed", "fold", "run", "data hash", "split hash", "state", "seconds"], rows)
    return Grid("run-hashes", "Runs, data and splits by their hashes", table, folded=len(rows) > 8, search=True)


def _versions(gathered: Gathered) -> list[Part]:
    """Of every kind of session that worked on the runs; no names of machines or users, no folders."""
    counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for member in {m.run.hash: m for m in gathered.members}.values():
        try:
            told = member.run.read_json("environment.json")
        except NearkinError:
            continue
        versions = {name: str(value) for name, value in told.get("versions", {}).items() if value}
        shown = {
            "python": str(told.get("python", "")),
            **versions,
            "commit": (told.get("commit") or "–")[:12],
            "cpu": str(told.get("cpu", "")),
            "threads": str(told.get("threads", "")),
        }
        counts[tuple(shown.items())] += 1
    if not counts:
        return []
    header = ["runs", *dict.fromkeys(key for each in counts for key, _ in each)]
    rows = [[n, *(dict(each).get(key) for key in header[1:])] for each, n in counts.most_common()]
    return [Grid("versions", "Versions and machines", Table("versions", header, rows), folded=len(rows) > 6)]
