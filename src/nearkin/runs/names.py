"""The name under which a run is stored: by the current rule, or by the former one.

Until commit 0f3455b the names of runs covered settings that nothing reads: the momentum of adamw, or the learning rate
of an untrained network. Runs that were stored under such a name keep it and are found by it, so that they are not
trained again.
"""

from typing import Any

from nearkin.config.born import original_default
from nearkin.config.parts import DataSpec
from nearkin.config.settings import ModelSpec, TrainSpec
from nearkin.config.spec import RunSpec
from nearkin.errors import NearkinError
from nearkin.runs.defaults import complete, fill, fit_batch
from nearkin.runs.prepare import Prepared, with_weights
from nearkin.runs.store import Run, Store
from nearkin.runs.sums import curve_files


def run_of(store: Store, prepared: Prepared, *, writes: bool = True) -> Run:
    """The run of prepared settings in a store, whether it exists or not: under its name or, if an older nearkin stored
    it, under its former one. A stored run with other settings is refused, and so is a test curve that would lack
    epochs.

    Parameters:
        store: where runs are stored.
        prepared: what is to be trained.
        writes: False gives a run that writes nothing.
    """
    run, spec = store.run(prepared.hash, writes=writes), prepared.spec
    if not (run.path / "spec.yaml").exists():
        before = former(prepared)
        stored = store.run(prepared.name_of(before, former=True), writes=writes)
        if (stored.path / "spec.yaml").exists():
            run, spec = stored, before
    run.check(spec)
    check_curve(run, prepared.spec)
    return run


def names_of(prepared: Prepared) -> tuple[str, ...]:
    """All names that a run may be stored under, the current one first."""
    return tuple(dict.fromkeys((prepared.hash, prepared.name_of(former(prepared), former=True))))


def check_curve(run: Run, spec: RunSpec) -> None:
    """Refuse to continue a run if its test curve would lack epochs: train.curve must be the same from the beginning."""
    stored = curve_files(run.path)
    if run.final or not run.begun or not (spec.train.curve or stored):
        return
    done = (run.load("checkpoint.pt") or {})["progress"]["epoch"]
    complete = stored[: max(done, 0)] == [f"curve/epoch-{epoch:04d}.npy" for epoch in range(1, done + 1)]
    if spec.train.curve and not complete:
        raise NearkinError(
            f"train.curve=true: run {run.hash} was trained to epoch {done} without a test curve, which would lack "
            f"these epochs; continue without train.curve, or `nearkin runs rm {run.hash}` and train it again"
        )
    if done > 0 and not spec.train.curve:
        raise NearkinError(
            f"train.curve=false: run {run.hash} was trained to epoch {done} with a test curve, which would lack the "
            f"epochs to come; continue with train.curve=true, or `nearkin runs rm {run.hash}` and train it again"
        )


# -- the former rule ---------------------------------------------------------------------------------------


def former(prepared: Prepared) -> RunSpec:
    """The resolved spec as the former rule stored it."""
    asked = prepared.requested or prepared.spec
    return fit_batch(asked, with_weights(resolved_before(asked)), prepared.labels)


def resolved_before(spec: RunSpec) -> RunSpec:
    """All settings filled in, and some of those that nothing reads at their defaults."""
    filled = without_idle(fill(spec))
    if filled.train.epochs == 0 and (plain := untrained(filled)) != spec:
        return resolved_before(plain)
    return complete(filled)


def without_idle(spec: RunSpec) -> RunSpec:
    """The same spec, with three settings at their defaults where nothing reads them."""
    data: dict[str, Any] = {}
    model: dict[str, Any] = {}
    train: dict[str, Any] = {}
    if spec.data.keep == spec.data.resize:
        data["keep"] = None
    if spec.model.head != "linear":
        model["init"] = original_default(ModelSpec.model_fields["init"])[0]
    if spec.train.warmup == 0:
        train["warmup_counts"] = True
    return spec.model_copy(
        update={
            "data": spec.data.model_copy(update=data),
            "model": spec.model.model_copy(update=model),
            "train": spec.train.model_copy(update=train),
        }
    )


def untrained(spec: RunSpec) -> RunSpec:
    """The part of a spec with epochs=0 that matters: data, protocol, network, seed."""
    crops = {key: DataSpec.model_fields[key].default for key in ("augment", "crop", "crop_scale", "crop_ratio", "flip")}
    return RunSpec(
        data=spec.data.model_copy(update=crops),
        protocol=spec.protocol,
        model=spec.model,
        purpose=spec.purpose,
        train=TrainSpec(epochs=0, seed=spec.train.seed, device=spec.train.device),
    )
