"""Which loss for my images? Screening by successive halving on validation classes, then real training.

Runs that screen are trials: never tested. The finalists and the untrained network are final runs; only the winner is
tested, once. All runs have one spec each from the start, so that what is interrupted goes on, and what was paused is
not begun again.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, PassingError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.progress import bar
from nearkin.runs.events import silent
from nearkin.runs.names import run_of
from nearkin.runs.prepare import Data, Prepared, prepare
from nearkin.runs.store import Run, Store
from nearkin.runs.test import test
from nearkin.runs.tested import validation_of
from nearkin.storage import atomic, with_sum, without_sum
from nearkin.studies.baselines import BASELINES
from nearkin.studies.pace import EMBEDDED, seconds_per_batch
from nearkin.studies.scheduler import Executor, Task, schedule
from nearkin.studies.searching import score_at
from nearkin.tuning._portfolio import PORTFOLIO, SCREENED, UNTRAINED, base_of, with_validation
from nearkin.tuning._schedule import FINALISTS, UNITS, Costs, Plan, halved, plan

ENOUGH = 0.95  # of the time, when no more is begun and what runs is stopped
CLOSING = 2.0  # seconds for what comes after the test

Say = Callable[[str], None]


@dataclass
class Candidate:
    """One method: what it had when it was screened, and its final runs."""

    name: str
    words: Mapping[str, Any]
    screened: list[float] = field(default_factory=list)  # validation result after 1 unit, 2 units
    runs: dict[int, Run] = field(default_factory=dict)  # seed -> final run that is trained
    error: str | None = None

    def scores(self, select: str) -> dict[int, float]:
        """Seed -> validation result of its final runs."""
        return {seed: validation_of(run, select) for seed, run in self.runs.items()}


class Choice:
    """A choice on its way, and what came out.

    Parameters:
        words: what the user gave, as for `nearkin train`.
        minutes: how long it may take, all sessions together.
        store: where the runs are.
        workers: runs at a time.
        say: told what happens.
        began: when the time began to count, by time.monotonic(); None: now.
    """

    def __init__(
        self,
        words: Mapping[str, Any],
        minutes: float,
        store: Store,
        workers: int,
        say: Say = lambda text: None,
        *,
        began: float | None = None,
    ):
        if not minutes > 0:
            raise NearkinError(f"minutes={minutes:g}: above 0; half a minute is the least that says anything")
        self.began = time.monotonic() if began is None else began
        self.seconds, self.store, self.workers, self.say = 60 * minutes, store, workers, say
        self.known: dict[str, Data] = {}
        spec, self.said = base_of(words)
        spec, more = with_validation(spec, words, self.known)
        self.spec, self.said = spec, [*self.said, *more]
        self.select = spec.train.select
        self.sign = -1 if metric_of(self.select).sign < 0 else 1
        key = json.dumps([self._starts(), float(minutes), workers])
        self.name = f"choose-{sha256(key.encode()).hexdigest()[:8]}"
        self.file = store.root / "studies" / self.name / "choose.json"
        self.state = self._stored()
        self.before = float(self.state["used"])
        self.candidates: dict[str, Candidate] = {}
        self.plan = Plan(**self.state["plan"]) if "plan" in self.state else Plan(0, 0, 0, 0, False)
        self.unfinished: list[str] = []  # finalists that the time did not suffice for
        self.untrained: Run | None = None
        self.tested: dict[str, float] = {}  # test metrics of the winner

    def _starts(self) -> list[str]:
        """The hashes of what is compared: data, network, settings and code of every method count in them."""
        starts = []
        for words in PORTFOLIO.values():
            try:
                starts.append(prepare(make_spec(self.spec, words, {"train.seed": SCREENED}), self.known).hash)
            except NearkinError as error:  # told when it is screened
                starts.append(str(error))
        return starts

    def _stored(self) -> dict[str, Any]:
        """How far earlier sessions came; from the start where that is damaged, with the runs that are there."""
        try:
            return without_sum(json.loads(self.file.read_text()))
        except (OSError, ValueError):
            return {"used": 0.0}

    # -- time -----------------------------------------------------------------------------------------------

    @property
    def used(self) -> float:
        """Seconds so far, of all sessions."""
        return self.before + time.monotonic() - self.began

    @property
    def late(self) -> bool:
        """Is it time to come to an end?"""
        return self.used > ENOUGH * self.seconds - self.state.get("test", 0.0) - CLOSING

    def keep(self) -> None:
        """Store how far it is."""
        self.state["used"] = self.used
        with atomic(self.file) as scratch:
            (scratch / self.file.name).write_text(json.dumps(with_sum(self.state), indent=1) + "\n")

    # -- what is done ---------------------------------------------------------------------------------------

    def run(self, executor: Executor) -> "Choice":
        """Screen, train, test; ends in time whatever happens."""
        self._begin()
        if "decided" in self.state:
            self._recall()
        else:
            try:
                self._screen(executor)
                self._finals(executor)
            finally:
                self.keep()
            self.state["decided"] = {
                name: {"screened": own.screened, "runs": {str(seed): run.hash for seed, run in own.runs.items()}}
                for name, own in self.candidates.items()
            }
            self.keep()
        self._test()
        self.keep()
        return self

    def _recall(self) -> None:
        """What was decided stays decided, whatever runs have been trained since."""
        for name, told in self.state["decided"].items():
            self.candidates[name].screened = told["screened"]
            self.candidates[name].runs = {int(seed): self.store.run(run) for seed, run in told["runs"].items()}

    def _begin(self) -> None:
        """The untrained network, what a step costs, and the plan."""
        prepared = prepare(self.spec, self.known)
        words = {"miner": "none", "regulariser": "none", "method": "none", **BASELINES["pooled"], "train.seed": 0}
        untrained = prepare(make_spec(self.spec, words), self.known)
        self.untrained = run_of(self.store, untrained)
        if not self.untrained.final:
            from nearkin.runs.fit import train

            self.say("the untrained network ...")
            train(untrained, runs=self.store, test=False, watch=silent)
        if "plan" not in self.state:
            self.say("trying a few steps ...")
            costs = self._costs(prepared)
            per_pass = max(1, len(prepared.split.train) // (prepared.spec.train.batch or 1))
            self.plan = plan(self.seconds, self.workers, costs, methods=len(PORTFOLIO), per_pass=per_pass)
            self.state |= {"plan": self.plan.told(), "test": costs.test}
            self.keep()
        names = list(PORTFOLIO)[: self.plan.methods]
        self.candidates = {name: Candidate(name, PORTFOLIO[name]) for name in names}

    def _costs(self, prepared: Prepared) -> Costs:
        first = make_spec(self.spec, PORTFOLIO["contrastive"], {"train.seed": SCREENED})
        batch = seconds_per_batch(prepare(first, self.known).spec, prepared.data_hash, self.store)
        image = EMBEDDED * batch / (prepared.spec.train.batch or 1)
        split = prepared.split
        train, val, tested = (len(rows) for rows in (split.train, split.val, split.test.images))
        return Costs(batch, image * val, image * (train + val), 2 + image * tested, self.used)

    def _spec(self, words: Mapping[str, Any], purpose: str, seed: int) -> RunSpec:
        length = {"train.epochs": UNITS, "train.batches_per_epoch": self.plan.batches}
        return make_spec(self.spec, dict(words), {"purpose": purpose, "train.seed": seed, **length})

    def _screen(self, executor: Executor) -> None:
        """Every method for one unit, the better half for one more."""
        alive = list(self.candidates.values())
        for unit in (1, 2):
            if not alive or (unit == 2 and len(self.candidates) <= FINALISTS):
                return
            pieces = self._pieces(alive, "trial", SCREENED)
            tasks = [Task(spec.whole(), run.path, until=unit) for _, spec, run in pieces if not _reached(run, unit)]
            self._go(tasks, executor, f"screening {len(pieces)} methods")
            for candidate, _, run in pieces:
                score = score_at(run, self.select, unit) if _reached(run, unit) else None
                if score is not None:
                    candidate.screened.append(score)
                elif run.failure is not None:
                    candidate.error = run.failure
            alive = [c for c in alive if len(c.screened) == unit]
            alive = self._best(alive)[: halved(len(self.candidates))]

    def _best(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=lambda c: (-len(c.screened), -self.sign * c.screened[-1]))

    def _finals(self, executor: Executor) -> None:
        """The finalists from the start, seed after seed."""
        screened = [c for c in self.candidates.values() if c.screened]
        finalists = self._best(screened)[: self.plan.finalists]
        for seed in range(self.plan.seeds):
            pieces = self._pieces(finalists, "final", seed)
            tasks = [Task(spec.whole(), run.path, test=False) for _, spec, run in pieces if not run.final]
            self._go(tasks, executor, f"training {', '.join(c.name for c, _, _ in pieces)}, seed {seed}")
            for candidate, _, run in pieces:
                if run.final:
                    candidate.runs[seed] = run
                elif seed == 0:
                    self.unfinished.append(candidate.name)

    def _pieces(self, candidates: Sequence[Candidate], purpose: str, seed: int) -> list[tuple[Candidate, RunSpec, Run]]:
        """Candidates with their spec and run; without those whose settings do not go together."""
        found = []
        for candidate in candidates:
            try:
                spec = self._spec(candidate.words, purpose, seed)
                found.append((candidate, spec, run_of(self.store, prepare(spec, self.known))))
            except NearkinError as error:
                candidate.error = str(error)
        return found

    def _go(self, tasks: list[Task], executor: Executor, what: str) -> None:
        """Carry out tasks until they are done or the time is up; what is stopped keeps its checkpoint."""
        if not tasks or self.late:
            return
        ended, saved = 0, time.monotonic()
        with bar(f"{what[:1].upper()}{what[1:]}", len(tasks)) as advance:
            for look in schedule(executor, tasks, stop=lambda: self.late):
                ended += len(look.ended)
                for failure in [over.failure for over in look.ended if over.failure]:
                    if failure.passing and not failure.killed:  # no method is dropped for it
                        raise PassingError(f"{failure.why}; the same command goes on")
                advance(ended)
                if time.monotonic() - saved > 5:
                    self.keep()
                    saved = time.monotonic()

    # -- what came out --------------------------------------------------------------------------------------

    @property
    def finalists(self) -> list[Candidate]:
        """Those with a final run, best first."""
        trained = [c for c in self.candidates.values() if 0 in c.runs]
        return sorted(trained, key=lambda c: -self.sign * self.mean(c))

    @property
    def seeds(self) -> list[int]:
        """The seeds that all finalists have."""
        own = [set(c.runs) for c in self.candidates.values() if 0 in c.runs]
        return sorted(set.intersection(*own)) if own else []

    def mean(self, candidate: Candidate) -> float:
        """Validation result over the common seeds."""
        scores = candidate.scores(self.select)
        return sum(scores[seed] for seed in self.seeds) / len(self.seeds)

    @property
    def plain(self) -> float:
        """Validation result of the untrained network."""
        assert self.untrained is not None
        return validation_of(self.untrained, self.select)

    @property
    def winner(self) -> Candidate | None:
        """The best finalist, unless the untrained network is better; None then, or where nothing was trained."""
        found = self.finalists
        return found[0] if found and self.sign * self.mean(found[0]) > self.sign * self.plain else None

    @property
    def winning_run(self) -> Run:
        """The run that is tested."""
        assert self.untrained is not None
        return self.winner.runs[0] if self.winner is not None else self.untrained

    @property
    def winning_name(self) -> str:
        """What won, in words."""
        return self.winner.name if self.winner is not None else UNTRAINED

    def _test(self) -> None:
        """Open the test labels for the winner, and for nothing else."""
        self.say(f"testing {self.winning_name} ...")
        test(self.winning_run, metrics=["recall@1", "map_at_r"], root=self.spec.data.root)
        self.tested = self.winning_run.metrics()


def _reached(run: Run, unit: int) -> bool:
    """Has it trained so many epochs?"""
    return run.final or any(line.get("epoch_end", 0) >= unit for line in run.log_lines())
