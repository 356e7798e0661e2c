"""The trials of a search in Optuna's storage: several processes share it, and none is lost or done twice.

A process claims a trial under the search's lock and holds the trial's own lock until it is over. The system frees a
lock when its process dies, however it dies: a trial that is under way and that nobody holds is claimed by the next
process, which goes on from the checkpoints of its runs. Processes that share a storage therefore share the folder of
runs.
"""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nearkin.errors import NearkinError
from nearkin.tuning.plan import Search
from nearkin.tuning.propose import Tried, begins_with_own, decoded, distributions, encoded, planned, propose

RUNNING, COMPLETE, PRUNED, FAILED = "running", "complete", "stopped early", "failed"


@dataclass(frozen=True)
class Trial:
    """One trial as it is stored.

    Parameters:
        number: 0, 1, ...
        values: what it tries.
        scores: rung -> the validation metric there, mean over folds, as it is.
        state: running, complete, stopped early or failed.
        error: why it failed.
    """

    number: int
    values: Mapping[str, Any]
    scores: tuple[float, ...] = ()
    state: str = RUNNING
    error: str = ""

    @property
    def score(self) -> float | None:
        """At its last rung."""
        return self.scores[-1] if self.scores else None


@dataclass
class Claim:
    """A trial that this process is to carry on with, up to a rung."""

    number: int
    values: Mapping[str, Any]
    rung: int
    lock: FileLock = field(repr=False)

    @property
    def values_key(self) -> str:
        """Its values as one word."""
        return repr(sorted(self.values.items()))


def optuna_module() -> Any:
    """Optuna, quiet; a NearkinError where it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise NearkinError("tuning needs optuna: pip install 'nearkin[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)
    return optuna


def open_storage(url: str) -> Any:
    """Optuna's storage at a database URL."""
    optuna = optuna_module()
    waits = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    try:
        return optuna.storages.RDBStorage(url, engine_kwargs=waits)
    except Exception as error:                      # whatever driver there is, it has errors of its own
        reason = " ".join(str(error).split())[:200]
        raise NearkinError(f"--storage {url} cannot be reached: {type(error).__name__}: {reason}") from error


class Ledger:
    """The stored trials of one search.

    Parameters:
        search: what is searched.
        storage: Optuna's storage.
        folder: where the locks are.
        lower: is the metric better when it is low?
    """

    def __init__(self, search: Search, storage: Any, folder: Path, *, lower: bool = False):
        optuna = optuna_module()
        self.search, self.lower = search, lower
        self.name = f"{search.study}: {search.name}"
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with self.locked():
            self.study = optuna.create_study(
                storage=storage, study_name=self.name, direction="maximize", load_if_exists=True
            )
            self._check()

    def _check(self) -> None:
        """A search of the same name must be the same search; it may get more trials where they are drawn one by one."""
        search = self.search
        told = {
            "space": {key: str(space) for key, space in search.space.items()}, "sampler": search.sampler,
            "rungs": list(search.rungs), "keep": search.keep, "seed": search.seed,
            "specs": [spec.changes() for spec in search.specs],
        }  # fmt: skip
        if search.sampler in ("grid", "coordinate") or search.keep > 1:
            told["trials"] = search.trials
        told = json.loads(json.dumps(told, default=str, sort_keys=True))
        known = self.study.user_attrs.get("search")
        if known is None:
            self.study.set_user_attr("search", told)
            return
        for key in told:
            if known.get(key) != told[key]:
                raise NearkinError(
                    f"search {self.name!r} was begun with {_difference(key, known.get(key), told[key])}; give the "
                    "study another name, or remove the old search (its file is tune.db in the study's folder)"
                )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time decides what is tried next."""
        with FileLock(self.folder / f"{_slug(self.search.name)}.lock"):
            yield

    def trials(self) -> list[Trial]:
        """All trials, in the order in which they began."""
        words = {"COMPLETE": COMPLETE, "PRUNED": PRUNED, "FAIL": FAILED}
        found = []
        for each in self.study.get_trials(deepcopy=False):
            sign = -1 if self.lower else 1
            scores = tuple(sign * each.intermediate_values[i] for i in sorted(each.intermediate_values))
            noted = each.user_attrs.get("values") or {}             # of the keys that are searched, and of no others
            values = {key: noted[key] if key in noted else decoded(space, each.params[key])
                      for key, space in self.search.space.items() if key in noted or key in each.params}
            found.append(Trial(each.number, values, scores, words.get(each.state.name, RUNNING),
                               each.user_attrs.get("error", "")))  # fmt: skip
        return found

    def claim(self) -> Claim | None:
        """A trial to carry on with: one that was left behind, one that is promoted to its next rung, or a new one."""
        with self.locked():
            trials = self.trials()
            rung, chosen = self.stage(trials)
            under_way = [trial for trial in trials if trial.state == RUNNING]
            for trial in under_way:
                if rung > 0 and trial.number not in chosen:
                    self.study.tell(trial.number, state=self._state("PRUNED"))
            for trial in under_way:
                if trial.number not in chosen or len(trial.scores) > rung:      # stopped early, or it waits for others
                    continue
                if (lock := self._lock(trial.number)) is not None:
                    return Claim(trial.number, trial.values, rung, lock)
            if len(trials) >= planned(self.search):
                return None
            return self._new(trials)

    def stage(self, trials: list[Trial]) -> tuple[int, set[int]]:
        """The rung that trials are being brought to, and which of them go there. All trials have reached one rung
        before the best of them, one of `keep`, go on to the next."""
        alive = {t.number: t for t in trials if t.state != FAILED}
        if len(trials) < planned(self.search):
            return 0, set(alive)
        chosen = set(alive)
        for rung in range(len(self.search.rungs)):
            if any(len(alive[n].scores) <= rung for n in chosen):
                return rung, chosen
            count = max(1, len(trials) // self.search.keep ** (rung + 1))
            order = sorted(chosen, key=lambda n: (-self._score(alive[n].scores[rung]), n))
            chosen = set(order[:count])
        return len(self.search.rungs), set()

    def _score(self, value: float) -> float:
        return -value if self.lower else value

    def _new(self, trials: list[Trial]) -> Claim | None:
        optuna = optuna_module()
        search, number = self.search, len(trials)
        values = None
        if search.sampler != "tpe" or number == 0:
            tried = [Tried(t.number, t.values, None if t.score is None else self._score(t.score), t.state != RUNNING)
                     for t in trials]  # fmt: skip
            if search.sampler == "tpe":
                values = search.start if begins_with_own(search) else None
            else:
                values = propose(search, tried)
                if values is None:                                  # it depends on trials that are under way
                    return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")                         # of values between the steps of a space
            if values is not None:
                codes = {key: encoded(space, values[key]) for key, space in search.space.items()}
                self.study.enqueue_trial(codes, user_attrs={"values": dict(values)})
            startup = max(2, search.trials // 4)
            seed = int.from_bytes(_digest(f"{search.seed} {number}"), "little") % 2**31
            self.study.sampler = optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=startup, constant_liar=True
            )
            trial = self.study.ask(distributions(search))
        if values is None:
            values = {key: decoded(space, trial.params[key]) for key, space in search.space.items()}
            trial.set_user_attr("values", values)
        lock = self._lock(trial.number)
        assert lock is not None
        return Claim(trial.number, values, 0, lock)

    def _lock(self, number: int) -> FileLock | None:
        lock = FileLock(self.folder / f"{_slug(self.search.name)}-{number}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return lock

    def report(self, claim: Claim, score: float, hashes: list[str]) -> None:
        """What a trial had at a rung; the last rung ends it."""
        optuna = optuna_module()
        value = self._score(score)
        with self.locked():
            frozen = self.study.get_trials(deepcopy=False)[claim.number]
            trial = optuna.trial.Trial(self.study, frozen._trial_id)
            trial.set_user_attr("runs", hashes)
            trial.report(value, claim.rung)
            if claim.rung == len(self.search.rungs) - 1:
                self.study.tell(claim.number, value)
        claim.lock.release()

    def fail(self, claim: Claim, why: str) -> None:
        """A trial that cannot be trained counts: it was tried."""
        optuna = optuna_module()
        with self.locked():
            frozen = self.study.get_trials(deepcopy=False)[claim.number]
            optuna.trial.Trial(self.study, frozen._trial_id).set_user_attr("error", why)
            self.study.tell(claim.number, state=self._state("FAIL"))
        claim.lock.release()

    def over(self) -> bool:
        """Have all trials ended?"""
        trials = self.trials()
        return len(trials) >= planned(self.search) and all(t.state != RUNNING for t in trials)

    def best(self) -> Trial | None:
        """The best trial that was trained to its end; of equal ones the first."""
        ended = [t for t in self.trials() if t.state == COMPLETE and t.score is not None]
        return max(ended, key=lambda t: (self._score(t.score or 0.0), -t.number), default=None)

    def _state(self, name: str) -> Any:
        return optuna_module().trial.TrialState[name]


def _difference(key: str, before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in {**before, **now}:
            if before.get(name) != now.get(name):
                return f"{key} {name}: {before.get(name, 'none')}, now {now.get(name, 'none')}"
    if key == "specs":
        return "other settings of its runs"
    return f"{key} {before}, now {now}"


def _slug(text: str) -> str:
    import hashlib

    words = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())
    return f"{words[:60]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _digest(text: str) -> bytes:
    import hashlib

    return hashlib.sha256(text.encode()).digest()[:8]
