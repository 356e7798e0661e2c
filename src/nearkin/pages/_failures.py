"""What is missing: runs that failed or were never run, queries and images that were left out."""

from typing import Any

from nearkin.comparison.gather import Gathered
from nearkin.pages._base import Grid, Part, Section, Words
from nearkin.pages._members import distinct, method_of
from nearkin.pages._scrub import Scrubber
from nearkin.present import Column, Table
from nearkin.runs.listing import state
from nearkin.units import COUNT


def section(gathered: Gathered, scrub: Scrubber) -> Section:
    """Always there: nothing missing is worth knowing, too."""
    lead = "What a mean does not show: runs without a result, queries without a right answer, unreadable images."
    return Section("gaps", "Failures and gaps", lead, [*_runs(gathered, scrub), *_queries(gathered)])


def _runs(gathered: Gathered, scrub: Scrubber) -> list[Part]:
    rows: list[list[Any]] = []
    for member in gathered.members:
        if not member.done:
            why = scrub(member.error or state(member.run))
            rows.append([method_of(member), member.seed, member.fold, member.run.hash, why])
    for words in gathered.absent:
        place, _, why = words.partition(": ")
        rows.append([place, None, None, None, scrub(why)])
    total = len(gathered.members) + len(gathered.absent)
    if not rows:
        return [Words("The run has a result." if total == 1 else f"All {total:,} runs have a result.")]
    table = Table("runs-without-result", ["method", "seed", "fold", "run", "why"], rows, "Runs without a result")
    have = "has" if len(rows) == 1 else "have"
    words = f"{len(rows)} of {total} runs {have} no result. The means above are over the others."
    return [Words(words, "warning"), Grid(table)]


def _queries(gathered: Gathered) -> list[Part]:
    rows: list[list[Any]] = []
    for member in distinct(gathered.tested):
        result = member.run.result
        lone, skipped = result.get("excluded", {}).get("lone_queries", 0), result.get("skipped_images", 0)
        if lone or skipped:
            rows.append([method_of(member), member.seed, member.run.hash, member.queries, lone, skipped])
    if not rows:
        return [Words("No query was left out, and no image was unreadable.")]
    counts = [Column(name, unit=COUNT) for name in ("queries", "lone queries left out", "unreadable images")]
    table = Table("excluded", ["method", "seed", "run", *counts], rows, "Queries and images that were left out")
    table.notes = ["A lone query has no other image of its class in the gallery: no answer could be right."]
    return [Grid(table, folded=len(rows) > 12)]
