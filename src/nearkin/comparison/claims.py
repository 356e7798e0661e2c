"""Claims of the literature against one's own study, from what is stored: no test labels are opened."""

from dataclasses import replace

from nearkin.comparison.gather import Gathered
from nearkin.comparison.rows import joined_row, named, row_of
from nearkin.literature.claims import Claim, claims
from nearkin.literature.decisions import ELSEWHERE, STATES, Verdict, decide_together
from nearkin.literature.matching import StudyRow
from nearkin.present import Column, Table
from nearkin.units import NUMBER, counted


def check_claims(gathered: Gathered, reading: str = "chosen") -> list[tuple[Claim, Verdict]]:
    """Every claim, and what these runs say of it; all of them are one family."""
    study = gathered.name if gathered.axes else "RUNS"
    return list(zip(claims(), decide_together(claims(), rows_of(gathered, reading), study), strict=True))


def rows_of(gathered: Gathered, reading: str = "chosen") -> list[StudyRow]:
    """The rows of a study, or of runs that differ in seed and fold alone, by every metric that a claim speaks of."""
    metrics = list(dict.fromkeys(metric for claim in claims() for metric in claim.metrics))
    rows = []
    for data, members in gathered.by_data.items():
        for name, runs in named(members, gathered.rows_by).items():
            values = {metric: row_of(name, runs, metric, reading=reading) for metric in metrics}
            joined = {}
            if reading == "chosen":  # the epoch whose embeddings are stored
                joined = {metric: joined_row(name, runs, metric, gathered) for metric in metrics}
            rows.append(StudyRow(name, runs[0].settings, values, joined, data))
    return rows


def claims_table(gathered: Gathered, reading: str = "chosen") -> Table:
    """What the literature claims, checked against these runs: decided claims first, those that are not tested last."""
    checked = sorted(check_claims(gathered, reading), key=lambda pair: STATES.index(pair[1].state))
    rows = []
    for claim, verdict in checked:
        reason = f"{verdict.reason}; unlike the source: {verdict.differs}" if verdict.differs else verdict.reason
        rows.append([claim.id, claim.claim, verdict.state, reason, verdict.measured, verdict.low, verdict.high])
    tested = sum(verdict.p is not None for _, verdict in checked)
    notes = ["the claims are no random sample of what was published: their share says nothing about the literature"]
    if tested > 1:
        notes.append(f"Holm's correction is over the {tested} claims that these runs test")
    measured = Column("measured", unit=NUMBER, digits=2)
    interval = Column("low", "95 % interval", NUMBER, digits=2, to="high")
    columns = ["claim", Column("says", "it says"), "here", "because", measured, interval, "high"]
    return Table("claims", columns, rows, f"claims of the literature against {gathered.name}", notes)


def measured_claims(table: Table) -> Table:
    """The same without the claims that these runs do not test; a note counts those."""
    rows = [row for row in table.rows if row[2] != ELSEWHERE]
    omitted = len(table.rows) - len(rows)
    if not omitted:
        return table
    claims_words = counted(omitted, "further claim" if rows else "claim")
    note = f"{claims_words} not tested here: about other data, networks, sizes or methods; files have all of them"
    return replace(table, rows=rows, notes=[*table.notes, note])
