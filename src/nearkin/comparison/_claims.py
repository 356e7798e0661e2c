"""Claims of the literature against one's own study, from what is stored: no test labels are opened."""

from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.rows import joined_row, named, row_of
from nearkin.literature.claims import Claim, claims
from nearkin.literature.matching import OwnRow
from nearkin.literature.own import Verdict, decide_together


def check_claims(gathered: Gathered, reading: str = "chosen") -> list[tuple[Claim, Verdict]]:
    """Every claim, and what these runs say of it; all of them are one family."""
    every = claims()
    study = gathered.name if gathered.axes else "RUNS"
    return list(zip(every, decide_together(every, rows_of(gathered, reading), study), strict=True))


def rows_of(gathered: Gathered, reading: str = "chosen") -> list[OwnRow]:
    """The rows of a study, or of runs that differ in seed and fold alone, by every metric that a claim speaks of."""
    metrics = list(dict.fromkeys(metric for claim in claims() for metric in claim.metrics))
    sets: dict[str, list[Member]] = {}
    for member in gathered.tested:
        sets.setdefault(member.head["data_hash"], []).append(member)
    rows = []
    for data, members in sets.items():
        for name, runs in named(members, gathered.axes or ("loss",)).items():
            values = {metric: row_of(name, runs, metric, reading=reading) for metric in metrics}
            joined = {}
            if reading == "chosen":  # the epoch whose embeddings are stored
                joined = {metric: joined_row(name, runs, metric, gathered) for metric in metrics}
            rows.append(OwnRow(name, runs[0].settings, values, joined, data))
    return rows
