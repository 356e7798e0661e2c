"""Claims of the literature against one's own study."""

from nearkin.comparison.compare import ensure_metric
from nearkin.comparison.gather import Gathered, Member
from nearkin.published.claims import Claim, claims
from nearkin.published.matching import OwnRow
from nearkin.published.own import Verdict, decide


def check_claims(gathered: Gathered, reading: str = "chosen") -> list[tuple[Claim, Verdict]]:
    """Every claim, and what these runs say of it."""
    rows = rows_of(gathered, reading)
    return [(claim, decide(claim, rows)) for claim in claims()]


def rows_of(gathered: Gathered, reading: str = "chosen") -> list[OwnRow]:
    """One row per place on the axes, or per set of settings that differ in seed and fold only."""
    for metric in gathered.metrics:
        ensure_metric(gathered, metric)
    groups: dict[str, list[Member]] = {}
    for member in gathered.tested:
        groups.setdefault(_place(gathered, member), []).append(member)
    rows: list[OwnRow] = []
    for members in groups.values():
        name = " ".join(members[0].labels.values()) or str(members[0].settings["loss.name"])
        values = _by_seed(gathered, members, reading)
        if values:
            rows.append({"name": name, "spec": members[0].settings, "values": values})
    return rows


def _place(gathered: Gathered, member: Member) -> str:
    if gathered.axes:
        return f"{member.head['data_hash']} {sorted(member.labels.items())}"
    return str(sorted((k, v) for k, v in member.settings.items() if k not in ("train.seed", "protocol.fold")))


def _by_seed(gathered: Gathered, members: list[Member], reading: str) -> dict[int, dict[str, float]]:
    """Seed -> metric -> mean over folds, of seeds with all folds."""
    folds = {member.fold for member in members}
    found: dict[int, dict[str, float]] = {}
    for seed in dict.fromkeys(member.seed for member in members):
        own = [member.numbers(reading, gathered.select) for member in members if member.seed == seed]
        if len(own) != len(folds):
            continue
        shared = [key for key in own[0] if all(each.get(key) is not None for each in own)]
        found[seed] = {key: sum(each[key] for each in own) / len(own) for key in shared}  # type: ignore[misc]
    return found
