"""The trials of a search in Optuna's storage: several processes share it, and none is lost or done twice.

A process claims a trial under the search's lock and holds the trial's own lock until it is over. The system frees a
lock when its process dies, however it dies: a trial that is under way and that nobody holds is claimed by the next
process, which goes on from the checkpoints of its runs. Processes that share a storage therefore share the folder of
runs. A trial is stored by one transaction, with all its values: a kill leaves a whole trial or none.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nearkin.errors import NearkinError
from nearkin.studies.propose import COMPLETE, FAILED, PRUNED, RUNNING, Trial, groups, optuna_module, planned, propose
from nearkin.studies.search import Search

STATES = {"COMPLETE": COMPLETE, "PRUNED": PRUNED, "FAIL": FAILED, "RUNNING": RUNNING}


@dataclass
class Claim:
    """A trial that this process is to carry on with, up to a rung."""

    number: int
    values: Mapping[str, Any]
    rung: int
    lock: FileLock = field(repr=False)


def open_storage(url: str) -> Any:
    """Optuna's storage at a database URL."""
    optuna = optuna_module()
    waits = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    try:
        return optuna.storages.RDBStorage(url, engine_kwargs=waits)
    except Exception as error:  # whatever driver there is, it has errors of its own
        reason = " ".join(str(error).split())[:200]
        raise NearkinError(f"storage={url} cannot be reached: {type(error).__name__}: {reason}") from error


class Ledger:
    """The stored trials of one search.

    Parameters:
        search: what is searched.
        storage: Optuna's storage.
        folder: where the locks are.
    """

    def __init__(self, search: Search, storage: Any, folder: Path):
        self.search, self.folder = search, folder
        self.name = f"{search.study}: {search.name} ({search.key})"
        folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self.study = optuna_module().create_study(
                storage=storage, study_name=self.name, direction="maximize", load_if_exists=True
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time decides what is tried next."""
        with FileLock(self.folder / f"{self.search.key}.lock"):
            yield

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they began. One that has its last result is complete, whatever a kill kept
        from being noted."""
        trials = []
        for stored in self.study.get_trials(deepcopy=False):
            results = stored.intermediate_values
            scores = tuple(self.search.sign * results[rung] for rung in sorted(results))
            state = STATES[stored.state.name]
            if state == RUNNING and len(scores) == len(self.search.rungs):
                state = COMPLETE
            values, error = stored.user_attrs["values"], stored.user_attrs.get("error", "")
            trials.append(Trial(stored.number, values, scores, state, error))
        return trials

    def claim(self) -> Claim | None:
        """A trial to carry on with: one that was left behind, one that is promoted to its next rung, or a new one."""
        with self._locked():
            trials = self.trials()
            rung, chosen = self.stage(trials)
            self._note_ended(trials, chosen)
            for trial in trials:
                if trial.state != RUNNING or trial.number not in chosen:
                    continue
                if len(trial.scores) <= rung and (lock := self._lock(trial.number)) is not None:  # else it waits
                    return Claim(trial.number, trial.values, rung, lock)
            return self._new(trials) if len(trials) < planned(self.search) else None

    def stage(self, trials: list[Trial]) -> tuple[int, set[int]]:
        """The rung that trials are being brought to, and which of them go there. All trials of a group have reached one
        rung before the best of them, one of `keep`, go on to the next."""
        search, first = self.search, 0
        for size in groups(search):
            group = {t.number: t for t in trials[first : first + size] if t.state != FAILED}
            chosen = set(group)
            if len(trials) < first + size:
                return 0, chosen
            for rung in range(len(search.rungs)):
                if any(len(group[number].scores) <= rung for number in chosen):
                    return rung, chosen
                order = sorted(chosen, key=lambda n: (-search.sign * group[n].scores[rung], n))
                chosen = set(order[: max(1, size // search.keep ** (rung + 1))])
            first += size
        return len(search.rungs), set()

    def _note_ended(self, trials: list[Trial], chosen: set[int]) -> None:
        """Tell Optuna of trials that are over and that it takes for running: those that were not chosen to go on, and
        complete ones, where a kill came between their result and their end."""
        for trial, stored in zip(trials, self.study.get_trials(deepcopy=False), strict=True):
            if stored.state.name != "RUNNING":
                continue
            if trial.state == COMPLETE:
                self.study.tell(trial.number, self.search.sign * trial.scores[-1])
            elif trial.number not in chosen:
                self.study.tell(trial.number, state=_state("PRUNED"))

    def _new(self, trials: list[Trial]) -> Claim | None:
        search, number = self.search, len(trials)
        values = propose(search, trials, self.study.get_trials(deepcopy=False))
        if values is None or (lock := self._lock(number)) is None:  # it depends on trials that are under way
            return None
        self.study.add_trial(
            optuna_module().trial.create_trial(
                state=_state("RUNNING"),
                user_attrs={"values": values},
                params={key: space.nearest(values[key]) for key, space in search.space.items()},
                distributions={key: space.distribution() for key, space in search.space.items()},
            )
        )
        return Claim(number, values, 0, lock)

    def _lock(self, number: int) -> FileLock | None:
        lock = FileLock(self.folder / f"{self.search.key}-{number}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return lock

    def report(self, claim: Claim, score: float, runs: list[str]) -> None:
        """What a trial had at a rung; the last rung ends it."""
        value = self.search.sign * score
        with self._locked():
            trial = self._optuna_trial(claim)
            trial.set_user_attr("runs", runs)
            trial.report(value, claim.rung)
            if claim.rung == len(self.search.rungs) - 1:
                self.study.tell(claim.number, value)
        claim.lock.release()

    def fail(self, claim: Claim, why: str) -> None:
        """A trial whose settings cannot be trained counts: it was tried."""
        with self._locked():
            self._optuna_trial(claim).set_user_attr("error", why)
            self.study.tell(claim.number, state=_state("FAIL"))
        claim.lock.release()

    def _optuna_trial(self, claim: Claim) -> Any:
        stored = self.study.get_trials(deepcopy=False)[claim.number]
        return optuna_module().trial.Trial(self.study, stored._trial_id)

    def over(self) -> bool:
        """Have all trials ended?"""
        trials = self.trials()
        return len(trials) >= planned(self.search) and all(t.state != RUNNING for t in trials)

    def best(self) -> Trial | None:
        """The best trial that was trained to its end; of equal ones the first."""
        ended = [t for t in self.trials() if t.state == COMPLETE]
        return max(ended, key=lambda t: (self.search.sign * t.scores[-1], -t.number), default=None)

    def epochs(self) -> int:
        """Epochs that its trials were trained for, all together."""
        rungs = self.search.rungs
        return sum(rungs[len(t.scores) - 1] for t in self.trials() if t.scores) * len(self.search.specs)


def _state(name: str) -> Any:
    return optuna_module().trial.TrialState[name]
