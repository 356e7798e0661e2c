"""`nearkin.fit`: the best model for one's own images, and what it is worth on classes that it has never seen.

    folds over classes     the untrained network and trained ones, each class tested once by models that never saw it
    the verdict            does training help here? Its interval is over classes
    the model              trained on all classes with what the folds chose; or the untrained network

Everything is a run: what is interrupted goes on, and the plan is stored at the first call.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.config.parse import PLAIN, canonical, parse_words
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, PassingError
from nearkin.fitting._costs import costs_of
from nearkin.fitting._plan import Costs, Plan, folds_for, plan
from nearkin.fitting._start import LOSSES, blend_of, cuts_of, start_of
from nearkin.fitting.fitted import Fitted, Method
from nearkin.fitting.in_words import WITHOUT
from nearkin.progress import note
from nearkin.runs.prepare import Data, Prepared, prepare
from nearkin.runs.store import Run, Store
from nearkin.storage import atomic, with_sum, without_sum
from nearkin.studies.baselines import BASELINES, WITHOUT_PARTS
from nearkin.studies.carry_out import RunsProgress
from nearkin.studies.cells import Cell, Study
from nearkin.studies.executors import executor_of, following
from nearkin.studies.pace import seconds_per_batch, work_of
from nearkin.studies.runner import Job, jobs_of, tasks_of
from nearkin.studies.runner import note as note_look
from nearkin.studies.scheduler import Executor, schedule
from nearkin.units import SECONDS, counted

UNTRAINED = {**WITHOUT_PARTS, "model.init": "kaiming", **BASELINES["pooled"]}

Words = str | Path | Mapping[str, Any]


def fit(
    images: Words,
    *,
    minutes: float = 30.0,
    losses: Sequence[str] = (),
    runs: Path | str = "runs",
    workers: int | None = None,
    ray: str | None = None,
    say: Callable[[str], None] = note,
    **words: Any,
) -> Fitted:
    """The best model for a folder of images, and what it is worth on classes that it has never seen.

    The folder's classes are divided into folds. Each fold is tested once, by the untrained network and by networks that
    were trained on the other folds; whether training helps is judged by the classes' differences. Then one model is
    trained on all classes with what the folds chose; where training does not help, the untrained network is the model.
    The same call after an interruption goes on.

    Parameters:
        images: a folder with one folder per class; or words, as one string or a mapping: `dataset=cub root=DIR`.
        minutes: how long it may take.
        losses: losses to compare; none: the recipe's, and others where the time allows.
        runs: the folder of the stored runs.
        workers: runs at a time, one thread each; None: one per core, 8 at most, or all that Ray has.
        ray: the address of a Ray cluster, HOST:PORT, or auto for the local one; None: without Ray.
        say: told what happens, one sentence at a time.
        words: further settings of the runs.

    Example:
        fitted = nearkin.fit("my_images", minutes=10)
        print(fitted)
        nearkin.embed(fitted.run, ["new.jpg"])
    """
    if not minutes > 0:
        raise NearkinError(f"minutes={minutes:g}: above 0")
    count = workers if ray is not None else workers or min(os.cpu_count() or 1, 8)
    with executor_of(count, ray) as executor:
        fitting = Fitting(_words(images, words), minutes, tuple(losses), Store(runs), executor, say)
        return fitting.carry_out()


def _words(images: Words, more: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as words."""
    if isinstance(images, Mapping):
        return {**images, **more}
    if isinstance(images, str) and "=" in images and not Path(images).exists():
        return {**parse_words(images.split()), **more}
    return {"dataset": "folder", "root": str(images), **more}


class Fitting:
    """A model on its way.

    Parameters:
        words: what the user gave.
        minutes: how long it may take, all sessions together.
        losses: the losses to compare; empty: the recipe's, and others where the time allows.
        store: where the runs are.
        executor: who carries them out.
        say: told what happens.
    """

    def __init__(
        self,
        words: Mapping[str, Any],
        minutes: float,
        losses: tuple[str, ...],
        store: Store,
        executor: Executor,
        say: Callable[[str], None],
    ):
        self.began, self.seconds = time.monotonic(), 60 * minutes
        self.store, self.executor, self.say = store, executor, say
        self.known: dict[str, Data] = {}
        self.base, said = start_of(words)
        self.given = canonical(dict(words))
        self.asked = losses
        self.losses: dict[str, dict[str, Any]] = {name: LOSSES.get(name, {"loss": name}) for name in losses} or LOSSES
        for name in losses:  # a misspelt one is an error now, not a missing row in half an hour
            make_spec(self.base, self.losses[name])
        self.whole = self._prepared({"protocol": "all"})
        images = np.bincount(self.whole.labels)
        self.classes, self.searchable = len(images), int((images >= 2).sum())  # a lone image has nothing to find
        if lone := self.classes - self.searchable:
            said.append(f"{counted(lone, 'class has', 'classes have')} one image: they train, and are not tested")
            if not any(key.startswith("sampler.") for key in self.given):  # balanced batches need two of a class
                self.losses = {name: {**words, "sampler": "random"} for name, words in self.losses.items()}
        key = json.dumps([self.whole.hash, minutes, list(self.losses), executor.workers])
        self.name = f"fit-{sha256(key.encode()).hexdigest()[:8]}"
        self.file = store.root / "studies" / self.name / "fit.json"
        self.state = self._stored()
        for line in said:
            say(line)

    # -- what is stored of it ------------------------------------------------------------------------------

    def _stored(self) -> dict[str, Any]:
        """How far earlier sessions came; from the start where that is damaged, with the runs that are there."""
        try:
            return without_sum(json.loads(self.file.read_text()))
        except (OSError, ValueError):
            return {"used": 0.0}

    def _keep(self) -> None:
        self.state["used"] += time.monotonic() - self.began
        self.began = time.monotonic()
        with atomic(self.file) as scratch:
            (scratch / self.file.name).write_text(json.dumps(with_sum(self.state), indent=1) + "\n")

    @property
    def used(self) -> float:
        """Seconds so far, of all sessions."""
        return self.state["used"] + time.monotonic() - self.began

    # -- the runs ------------------------------------------------------------------------------------------

    def _prepared(self, *words: Mapping[str, Any]) -> Prepared:
        return prepare(make_spec(self.base, *words), self.known)

    def _fold(self, fold: int, plan: Plan, words: Mapping[str, Any]) -> RunSpec:
        protocol = {"protocol": "cross", "protocol.folds": plan.folds, "protocol.fold": fold}
        blend = blend_of(self.base, self.given, plan.share > 0)
        return make_spec(self.base, {**protocol, "protocol.share": plan.share, "model.cut": plan.cut, **blend}, words)

    def _jobs(self, plan: Plan) -> tuple[dict[str, list[Job]], list[Method]]:
        """Network -> its runs, one per fold, the untrained one first; and the losses that are refused, with the reason.
        No run of theirs is wanted."""
        cells: dict[str, list[Cell]] = {}
        refused: list[Method] = []
        for name, words in {WITHOUT: UNTRAINED, **{name: self.losses[name] for name in plan.losses}}.items():
            try:
                specs = [self._fold(fold, plan, words) for fold in range(plan.folds)]
            except NearkinError as error:
                if name == WITHOUT:
                    raise
                refused.append(Method(name, words, [], str(error)))
                continue
            labels = [f"{name}, fold {fold + 1} of {plan.folds}" for fold in range(plan.folds)]
            cells[name] = [Cell((label,), 0, spec) for label, spec in zip(labels, specs, strict=True)]
        jobs = {name: jobs_of(self._study(*row), self.store, self.known) for name, row in cells.items()}
        for name in [name for name in jobs if name != WITHOUT]:
            if reason := next((job.error for job in jobs[name] if job.error), None):
                refused.append(Method(name, self.losses[name], [], reason))
                del jobs[name]
        return jobs, refused

    def _study(self, *cells: Cell) -> Study:
        """Runs as those of a study: they are carried out and followed like these."""
        return Study(self.name, ("network",), cells, ())

    # -- what is done --------------------------------------------------------------------------------------

    def carry_out(self) -> Fitted:
        """Plan, train and test the folds, judge, train the model."""
        plan = self._plan()
        if plan.folds:
            folds = f"{counted(plan.folds, 'fold')} over {counted(self.classes, 'class', 'classes')}"
            names = ", ".join(["the untrained network", *plan.losses])
            self.say(f"{folds}: {names}; about {SECONDS.text(plan.seconds)}")
        jobs, methods = self._jobs(plan)
        untrained = jobs.pop(WITHOUT)
        every = [*untrained, *(job for fold in zip(*jobs.values(), strict=True) for job in fold)]
        try:
            self._go(every, self._last_work(plan, list(jobs)))
        finally:
            self._keep()
        there = [fold for fold, job in enumerate(untrained) if job.finished]  # not one whose images are all alone
        if plan.folds and not there:
            raise NearkinError(f"the untrained network could not be tested: {untrained[0].error or 'it was stopped'}")
        for name, row in jobs.items():
            tested = [row[fold] for fold in there]
            failed = [job.error or "it was stopped" for job in tested if not job.finished]
            runs = [] if failed else [job.run for job in tested]
            methods.append(Method(name, self.losses[name], runs, failed[0] if failed else None))
        plain = [untrained[fold].run for fold in there]
        counts = self.classes, self.searchable
        asked = {"minutes": self.seconds / 60, "losses": list(self.asked), "workers": self.executor.workers}
        asked |= {
            "words": {key: value if isinstance(value, PLAIN) else str(value) for key, value in self.given.items()}
        }
        about = self.base.train.select, self.base.model.weights is not None, asked
        fitted = Fitted(self.name, self.store, plan, counts, plain, methods, *about)
        fitted.run = self._model(fitted)
        fitted.seconds = self.used
        self.state |= {"model": fitted.run.hash, "estimate": fitted.estimate()}
        self._keep()
        return fitted

    def _plan(self) -> Plan:
        """What will be done: decided once, at the first call."""
        if "plan" in self.state:
            return Plan.of(self.state["plan"])
        folds, share = folds_for(self.searchable)
        if not folds:
            decided = plan(
                self.seconds, self.executor.workers, self.searchable, {"none": Costs(0, 0, 0)}, (), all_losses=False
            )
        else:
            self.say("trying a few steps ...")
            guess = Plan(folds, share, self.base.model.cut, (), 0.0)
            first = prepare(self._fold(0, guess, next(iter(self.losses.values()))), self.known)
            batch = seconds_per_batch(first.spec, first.data_hash, self.store)
            images = len(self.whole.labels)
            costs = {
                cut: costs_of(first, batch, images, self.used, behind=cut != self.base.model.cut)
                for cut in cuts_of(self.base, self.given)
            }
            names = tuple(self.losses)
            decided = plan(
                self.seconds, self.executor.workers, self.searchable, costs, names, all_losses=bool(self.asked)
            )
        self.state["plan"] = decided.as_json()
        self._keep()
        return decided

    def _last_work(self, plan: Plan, losses: Sequence[str]) -> float:
        """Work of the model on all classes, which has one worker while the others wait."""
        if not losses:
            return 0.0
        words = {"protocol": "all", "model.cut": plan.cut, **self.losses[losses[0]]}
        return self.executor.workers * work_of(self._prepared(words))

    def _go(self, jobs: Sequence[Job], after: float = 0.0) -> None:
        """Carry out runs, and show how far they are."""
        if all(job.finished or job.error for job in jobs):
            return
        progress, saved = RunsProgress(jobs, self.executor.workers, after), time.monotonic()
        with following() as watch:
            for look in schedule(self.executor, tasks_of(list(jobs))):
                note_look(list(jobs), look)
                for failure in [over.failure for over in look.ended if over.failure]:
                    if failure.passing and not failure.killed:  # no loss is dropped for it
                        raise PassingError(f"{failure.why}; the same command goes on")
                watch(progress)
                if time.monotonic() - saved > 5:
                    self._keep()
                    saved = time.monotonic()

    def _model(self, fitted: Fitted) -> Run:
        """The model on all classes, stored as a run that says what its estimate rests on."""
        spec = make_spec(self.base, {"protocol": "all"}, fitted.settings if fitted.helps else UNTRAINED)
        (job,) = jobs_of(self._study(Cell(("the model on all classes",), 0, spec)), self.store, self.known)
        self._go([job])
        if not job.finished:
            raise NearkinError(f"the model on all classes could not be made: {job.error or 'it was stopped'}")
        with job.run.lock():
            job.run.write_json("estimate.json", fitted.estimate())
            job.run.seal()
        return job.run
