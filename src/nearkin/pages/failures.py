"""What is missing: runs that failed or were never run, queries and images that were left out."""

from typing import Any

from nearkin.pages.base import Grid, Part, Section, Table, Words
from nearkin.pages.material import Material
from nearkin.pages.scrub import Scrubber
from nearkin.runs.listing import state


def section(material: Material, scrub: Scrubber) -> Section:
    """Always there: nothing missing is a finding too."""
    lead = "What a mean does not show: runs without a result, queries without a right answer, unreadable images."
    return Section("gaps", "Failures and gaps", lead, [*_runs(material, scrub), *_queries(material)])


def _runs(material: Material, scrub: Scrubber) -> list[Part]:
    rows: list[list[Any]] = []
    for member in material.gathered.members:
        if not member.done:
            why = member.error or state(member.run)
            rows.append(
                [
                    ", ".join(member.labels.values()) or member.settings["loss.name"],
                    member.seed,
                    member.fold,
                    member.run.hash,
                    scrub(why),
                ]
            )
    for words in material.gathered.absent:
        place, _, why = words.partition(": ")
        rows.append([place, None, None, None, scrub(why)])
    if not rows:
        return [Words(f"All {len(material.gathered.members)} runs have a result.")]
    total = len(material.gathered.members) + len(material.gathered.absent)
    table = Table("runs-without-result", ["method", "seed", "fold", "run", "why"], rows)
    return [
        Words(f"{len(rows)} of {total} runs have no result. The means above leave them out.", "warning"),
        Grid("runs-without-result", "Runs without a result", table),
    ]


def _queries(material: Material) -> list[Part]:
    rows: list[list[Any]] = []
    for member in {m.run.hash: m for m in material.gathered.tested}.values():
        result = member.run.result
        lone, skipped = result.get("excluded", {}).get("lone_queries", 0), result.get("skipped_images", 0)
        if lone or skipped:
            rows.append(
                [
                    ", ".join(member.labels.values()) or member.settings["loss.name"],
                    member.seed,
                    member.run.hash,
                    result["test_n"],
                    lone,
                    skipped,
                ]
            )
    if not rows:
        return [Words("No query was left out, and no image was unreadable.")]
    table = Table("excluded", ["method", "seed", "run", "queries", "lone queries left out", "unreadable images"], rows)
    return [
        Grid(
            "excluded",
            "Queries and images that were left out",
            table,
            folded=len(rows) > 12,
            notes=["A lone query has no other image of its class in the gallery: no answer could be right."],
        )
    ]
