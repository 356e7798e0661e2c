"""Claims of the literature in the user's study: holds, does not hold, cannot be decided, or not tested here.

A claim is tested with the rows that it names, on the data sets that it is about, and with the settings that its words
name (`needs`, `every` in `data/claims.json`); elsewhere it is not tested. The source's other settings (`at`) are taken
where the study has them; where not, the verdict says how it differs.

Every claim comes to comparisons (comparisons.py), each with a p value for the claim and one against it (evidence.py).
Where all must hold, the largest p is for the claim, and against it the smallest times their number; where one suffices
it is the other way round. A claim can be decided both ways, so its p value is twice the smaller of the two. Claims of
one page are one family: Holm's correction over all claims that the study tests, so that in at most 5 % of studies any
verdict on the page is wrong. No claim is decided from fewer than three seeds.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nearkin.errors import and_more
from nearkin.literature._comparisons import compared
from nearkin.literature._evidence import Joint, Parts
from nearkin.literature._experiments import Experiment, Missing
from nearkin.literature.claims import Claim
from nearkin.literature.matching import StudyRow, fits
from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.paired import holm

HOLDS, FAILS, OPEN, ELSEWHERE = "holds", "does not hold", "cannot be decided", "not tested here"
STATES = (HOLDS, FAILS, OPEN, ELSEWHERE)
NAMES = {"CUB200-2011": "cub", "Cars196": "cars196", "SOP": "sop", "ImageNet": "imagenet"}


@dataclass(frozen=True)
class Verdict:
    """What a study says of a claim, by the comparison that decides it."""

    state: str  # one of STATES
    reason: str
    measured: float | None = None  # mean over seeds, in `unit`
    low: float | None = None  # of its 95 % interval
    high: float | None = None
    unit: str = "points"
    differs: str = ""  # how the study's settings are not the source's
    p: float | None = None  # after Holm's correction over the claims of the page; None: not tested


@dataclass(frozen=True)
class _Weighed:
    """What a study has for and against one claim, before the correction over the page."""

    joint: Joint | None  # None: nothing to compare
    missing: Missing
    differs: str = ""
    elsewhere: str = ""  # why the claim is not about these runs
    one_suffices: bool = False

    @property
    def p_for(self) -> float:
        """What is missing could fail, unless one comparison suffices."""
        return 1.0 if self.joint is None or (self.missing and not self.one_suffices) else self.joint.p_for

    @property
    def p_against(self) -> float:
        """What is missing could hold, which saves a claim where one comparison suffices."""
        return 1.0 if self.joint is None or (self.missing and self.one_suffices) else self.joint.p_against

    @property
    def p(self) -> float | None:
        """Two-sided; None where nothing could be tested."""
        if self.joint is None or all(leaf.reason for leaf in self.joint.leaves):
            return None
        return min(1.0, 2 * min(self.p_for, self.p_against))


def decide(claim: Claim, rows: Sequence[StudyRow], study: str = "STUDY") -> Verdict:
    """Decide one claim by itself from the rows of a study."""
    return decide_together([claim], rows, study)[0]


def decide_together(claims: Sequence[Claim], rows: Sequence[StudyRow], study: str = "STUDY") -> list[Verdict]:
    """Decide claims that are shown together.

    Parameters:
        claims: of `nearkin.literature.claims.claims()`.
        rows: of a study, with what is stored; shares are 0 to 1. Untrained networks are left out.
        study: what `nearkin compare` is given to measure a metric that is missing.
    """
    trained = [row for row in rows if row.spec.get("train.epochs") != 0]
    weighed = [_weigh(claim, trained) for claim in claims]
    tested = {i: one.p for i, one in enumerate(weighed) if one.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())).tolist(), strict=True))
    return [_verdict(one, corrected.get(i), study) for i, one in enumerate(weighed)]


def _weigh(claim: Claim, rows: Sequence[StudyRow]) -> _Weighed:
    if claim.in_study is None:
        needs = f"it would take {claim.study_needs}" if claim.twin else claim.study_needs
        return _Weighed(None, Missing(), elsewhere=needs)
    every = {"data.name": [NAMES[name] for name in claim.data], **claim.in_study.get("every", {})}
    for key, required in {**every, **claim.in_study.get("needs", {})}.items():
        alike = [row for row in rows if fits(row.spec, {key: required})]
        if not alike:
            ours = sorted({str(row.spec.get(key)) for row in rows})
            have = f"; these runs have {_words(ours)}" if ours else ""
            return _Weighed(None, Missing(), elsewhere=f"it is about {key} {_words(required)}{have}")
        rows = alike
    rows, differs = _closest(claim.in_study.get("at", {}), rows)
    conditions, missing, parts = claim.in_study["conditions"], Missing(), Parts()
    for condition in conditions:
        lacking = Missing()
        parts += compared(condition, _experiments(every, condition.get("where", {}), rows, lacking))
        missing.add(lacking)
    one_suffices = all(condition.get("need") == "any" for condition in conditions)
    return _Weighed(Joint(parts) if parts else None, missing, differs, one_suffices=one_suffices)


def _experiments(
    every: dict[str, list[Any]], where: dict[str, Any], rows: Sequence[StudyRow], missing: Missing
) -> list[Experiment]:
    """The rows of each data set, network, size, ... of which a claim says that it holds there."""
    named = {key: values if key not in where else [where[key]] for key, values in every.items()}
    several = [key for key, values in named.items() if len(values) > 1]
    experiments = []
    for place in itertools.product(*named.values()):
        settings = dict(zip(named, place, strict=True))
        words = ", ".join(f"{key}={settings[key]}" for key in several)
        on = f" on {settings['data.name']}" if "data.name" in several else ""
        alike = [row for row in rows if fits(row.spec, settings)]
        experiments.append(Experiment(alike, missing, words, on))
    return experiments


def _closest(at: dict[str, Any], rows: Sequence[StudyRow]) -> tuple[Sequence[StudyRow], str]:
    """The rows with the source's settings; where there are none all of them, and what differs, in words."""
    differs = []
    for key, required in at.items():
        rows = [row for row in rows if fits(row.spec, {key: required})] or rows
        ours = sorted({str(row.spec.get(key)) for row in rows})
        theirs = sorted(map(str, required)) if isinstance(required, list) else [str(required)]
        if ours != theirs:
            differs.append(f"{key} {', '.join(ours)}, there {', '.join(theirs)}")
    return rows, "; ".join(differs)


def _verdict(weighed: _Weighed, p: float | None, study: str) -> Verdict:
    lacks = f"the study lacks {and_more(weighed.missing.words(study), 3, '; ')}"
    if weighed.joint is None:  # a metric is missed of rows that are there
        return Verdict(OPEN if weighed.missing.metrics else ELSEWHERE, weighed.elsewhere or lacks)
    against = weighed.p_against < weighed.p_for
    if p is None or p >= ALPHA:
        if weighed.missing:
            return Verdict(OPEN, lacks, differs=weighed.differs, p=p)
        state, which, against = OPEN, "the least clear", False
    else:
        state, which = (FAILS, "the clearest") if against else (HOLDS, "the closest")
        if weighed.one_suffices:
            which = "the closest" if against else "the clearest"
    leaf, count = weighed.joint.telling(against=against), len(weighed.joint.leaves)
    words = leaf.sentence() + (f"; {which} of {count} comparisons" if count > 1 else "")
    return Verdict(state, words, leaf.mean, leaf.low, leaf.high, leaf.unit, weighed.differs, p)


def _words(values: Any) -> str:
    return and_more([str(value) for value in values], 4) if isinstance(values, list) else str(values)
