"""`nearkin.test`: the test of a final run.

The labels of the test rows are read from the data, for a run that is stored as final, and only here. Embeddings are
stored, so that a test with other metrics takes seconds and trains nothing.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.spec import RunSpec, make_spec
from nearkin.consent import consent, import_paths, may_import
from nearkin.engine.device import pick_device
from nearkin.engine.distributed import ranks
from nearkin.engine.embed import embed
from nearkin.errors import NearkinError
from nearkin.evaluation import retrieval
from nearkin.evaluation.metrics.base import metric_of, parse
from nearkin.evaluation.per_query import write_per_query
from nearkin.evaluation.retrieval import Evaluation
from nearkin.evaluation.tiles import check_distance
from nearkin.protocols import Split
from nearkin.runs.defaults import resolve
from nearkin.runs.embed import load_model, rebuild
from nearkin.runs.prepare import Prepared, make_source, make_split, pixels_of, read_data
from nearkin.runs.result import Metrics
from nearkin.runs.store import Run, Store
from nearkin.runs.tested import TestSet, store_per_query, stored_epochs
from nearkin.storage import UNREADABLE


def test(
    run: str | Path | Run,
    *,
    metrics: Sequence[str] | None = None,
    k: Sequence[int] | None = None,
    distance: str = "cosine",
    runs: Path | str = "runs",
    root: Path | str | None = None,
    spec: RunSpec | None = None,
    trust: bool = False,
) -> Metrics:
    """Test a final run, or test it again with other metrics; nothing is trained.

    Parameters:
        run: a run, or its path, its hash or the beginning of its hash.
        metrics: names as in `nearkin list metrics`, such as nmi or recall@100; None: the usual ones.
        k: of Recall@k; None: the usual ones of the data set.
        distance: cosine, euclid (raw vectors) or snr.
        runs: the folder of the stored runs.
        root: where its data are now, if they were moved since it was trained.
        spec: a spec of the same run with the current paths of its data and protocol files; None: the stored one.
        trust: import data set, protocol or network where the run names them by import paths, which runs that code.

    Example:
        nearkin.test("3f2a", metrics=["nmi", "ami", "f1", "map@1000"])
    """
    final_run = run if isinstance(run, Run) else Store(runs).find(str(run))
    if trust:
        consent(import_paths(final_run.stored))
    if (stored := _stored(final_run, metrics, k, distance)) is not None:
        return Metrics(stored, final_run.hash, distance)
    with final_run.lock():
        if root is not None:
            spec = make_spec(spec or final_run.spec, {"data.root": str(root)})
        store = Store(final_run.path.parent)
        values = measure(store, final_run, metrics=metrics, k=k, distance=distance, spec=spec)
        return Metrics(values, final_run.hash, distance)


test.__test__ = False  # type: ignore[attr-defined]


def measure(
    store: Store,
    run: Run,
    *,
    metrics: Sequence[str] | None = None,
    k: Sequence[int] | None = None,
    distance: str = "cosine",
    device: torch.device | None = None,
    spec: RunSpec | None = None,
) -> dict[str, float]:
    """The same for a run whose lock is held, in all processes of a job. Stored values are not computed again."""
    check_final(run)
    check_distance(distance)
    for name in metrics or ():
        parse(name)
    embedded = ranks().share(lambda: _holds_embeddings(run))  # the same in all processes
    tested = TestSet.of(run) if embedded else _embedded(run, spec or run.spec, device)
    if not ranks().first:
        return {}
    customary, wanted = _customary(run, tested), _wanted(run, tested, metrics, k)
    if not run.tested:
        store.opened(run, ["the customary ones"], retrieval.VERSION)
        _store_first(run, tested, tested.evaluate(k=customary))
    missing = [key for key in wanted if key not in _known(run, distance)]
    if missing:
        store.opened(run, missing, retrieval.VERSION)
        evaluation = tested.evaluate(metrics=missing, distance=distance)
        if distance == "cosine":
            store_per_query(run, evaluation)
        _store_further(run, evaluation)
    if _has_curve(run, distance):
        _extend_curve(run, tested, wanted)
    run.tidy()
    known = _known(run, distance)
    return {key: known[key] for key in wanted}


def _stored(run: Run, metrics: Sequence[str] | None, k: Sequence[int] | None, distance: str) -> dict[str, float] | None:
    """The requested values if all of them are stored: then nothing is written, not even a lock. Otherwise None."""
    check_final(run)
    check_distance(distance)
    if not run.tested or run.untidy or not _holds_embeddings(run):
        return None
    wanted = _wanted(run, TestSet.of(run), metrics, k)
    known = _known(run, distance)
    tables = [known, *([run.read_json("curve.json")["epochs"][0]["metrics"]] if _has_curve(run, distance) else [])]
    return {key: known[key] for key in wanted} if all(key in table for key in wanted for table in tables) else None


def _wanted(run: Run, tested: TestSet, metrics: Sequence[str] | None, k: Sequence[int] | None) -> list[str]:
    """The requested metrics, each with its k; those that need more neighbours than there are are refused."""
    ks = _customary(run, tested) if k is None else k
    requested = [m for name in metrics or retrieval.DEFAULT for m in parse(name, ks)]
    for m in requested:  # before anything is opened
        if m.k is not None and m.k > tested.available:
            raise NearkinError(f"{m.key}: k={m.k}, but the gallery offers {tested.available} neighbours per query")
    return [m.key for m in requested]


def _has_curve(run: Run, distance: str) -> bool:
    return distance == "cosine" and (run.path / "curve.json").exists()


def check_final(run: Run) -> None:
    """Refuse to open test labels for a run that is not stored as final, or that is a trial. The stored state
    decides, not the caller's object."""
    run = Run(run.path)
    if run.purpose == "trial":
        raise NearkinError(f"run {run.hash} is a trial (purpose=trial): trials choose settings and are never tested")
    if not run.testable:
        raise NearkinError(f"run {run.hash} was trained on all classes (protocol=all): there are no test images")
    if not run.final:
        raise NearkinError(
            f"run {run.hash} is not final: the test labels are locked until its epoch is chosen; start the same "
            "training again to finish it"
        )


def _holds_embeddings(run: Run) -> bool:
    """The list of the test images is written last."""
    return (run.path / "test.parquet").exists()


def _embedded(run: Run, requested: RunSpec, device: torch.device | None) -> TestSet:
    """Read the data again, embed the test images, and store the embeddings, then the list of the images. `requested` is
    a spec of the run, which says where the data are now."""
    device = device or pick_device(requested.train.device)
    spec, head, here = resolve(requested), run.head(), ranks()
    data = read_data(spec.data)
    split = make_split(spec, data.table)
    if (data.hash, split.hash()) != (head["data_hash"], head["split_hash"]):
        raise NearkinError(
            f"run {run.hash} was trained on data {head['data_hash']}, split {head['split_hash']}; "
            f"{spec.data.root or spec.data.name} is data {data.hash}, split {split.hash()} here"
        )
    none = np.empty(0, np.int64)
    prepared = Prepared(spec, split, none, none, pixels_of(spec, data), data.hash, {})
    model = rebuild(spec)
    load_model(model, run)
    source = make_source(prepared, model.to(device))
    z = embed(model, source, split.test.images, device, title="Embedding the test images")
    names = np.array(data.table.classes)[data.table.labels[split.test.images]]
    if here.first:
        _store_test_set(run, split, z, [data.table.shown(int(row)) for row in split.test.images], names)
    return TestSet(z, names, split.test.roles, split.test.images)


def _store_test_set(run: Run, split: Split, z: torch.Tensor, paths: list[str], names: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, roles = split.test.images, split.test.roles
    with run.put("embeddings.npz") as file:
        np.savez(file, embeddings=z.numpy(), labels=names, rows=rows, roles=roles)
    with run.put("test.parquet") as file:
        table = pa.table({"row": rows, "path": paths, "class": names.tolist(), "role": roles.tolist()})
        pq.write_table(table, file)


def _customary(run: Run, tested: TestSet) -> tuple[int, ...]:
    """The usual k of Recall@k for its data set; if that may not be imported, those of the first test."""
    data = run.spec.data
    if run.tested and not may_import(data.name):
        numbers = [key.removeprefix("recall@") for key in run.result["test"] if key.startswith("recall@")]
        ks: Sequence[int] = [int(number) for number in numbers if number.isdecimal()]
    else:
        ks = getattr(data.cls, "ks", retrieval.DEFAULT_K)
    return tuple(k for k in ks if k <= tested.available)


def _known(run: Run, distance: str) -> dict[str, float]:
    """Stored metrics of the current version of the evaluation."""
    values: dict[str, float] = {}
    if run.tested and distance == "cosine" and run.result.get("evaluation", 1) == retrieval.VERSION:
        values |= run.result["test"]
    further = _further(run).get(distance, {})
    return values | (further["metrics"] if further.get("evaluation") == retrieval.VERSION else {})


def _further(run: Run) -> dict[str, Any]:
    return run.read_json("tests.json") if (run.path / "tests.json").exists() else {}


def _store_further(run: Run, evaluation: Evaluation) -> None:
    """Store them with the results of earlier tests under the same distance and version of the evaluation."""
    further = dict(_further(run))
    before = further.get(evaluation.distance, {})
    metrics_before = before.get("metrics", {}) if before.get("evaluation") == retrieval.VERSION else {}
    further[evaluation.distance] = {
        "evaluation": retrieval.VERSION,
        "metrics": metrics_before | evaluation.metrics,
        "excluded": evaluation.excluded,
        "tested": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    run.write_json("tests.json", further)


def _store_first(run: Run, tested: TestSet, evaluation: Evaluation) -> None:
    """Store the usual test: the metrics of every query, the test curve if there is one, and last the result."""
    with run.put("per_query.parquet") as file:
        write_per_query(evaluation, file)
    final = run.read_json("final.json")
    if stored_epochs(run):
        run.write_json("curve.json", _curve(run, tested, final, evaluation))
    head = run.head()
    run.write_json(
        "result.json",
        {
            "hash": run.hash,
            **{
                key: final[key]
                for key in ("rule", "select", "epoch", "epochs_trained", "seconds", "validation", "train")
            },
            "test": evaluation.metrics,
            "test_n": evaluation.n,
            "evaluation": retrieval.VERSION,
            "excluded": evaluation.excluded,
            "skipped_images": final["skipped_images"],
            "split": final["split"],
            **{key: final[key] for key in ("blend", "recipe") if key in final},
            "data_hash": head["data_hash"],
            "tested": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        },
    )


def _curve(run: Run, tested: TestSet, final: dict[str, Any], evaluation: Evaluation) -> dict[str, Any]:
    """Test metrics of every epoch, and three readings of them: the last epoch, the one that validation chose, and, as
    in the literature, the best on the test set itself, for each metric separately. Where weights are averaged, the
    epochs are those of the average, and `trained` has the same of the weights as trained."""
    metrics, chosen = list(evaluation.metrics), final["epoch"]
    points = _points(run, tested, metrics)
    for point in points:
        if point["epoch"] == chosen and _stores_an_epoch(final):  # the embeddings that were just evaluated
            point["metrics"] = dict(evaluation.metrics)
    return _readings(points, chosen, _points(run, tested, metrics, "trained"))


def _stores_an_epoch(final: dict[str, Any]) -> bool:
    """Is the stored model that of an epoch, not a blend with the first weights?"""
    return final.get("blend", 1.0) == 1


def _extend_curve(run: Run, tested: TestSet, wanted: list[str]) -> None:
    """Add the metrics of a further test to every epoch of the curve."""
    curve = run.read_json("curve.json")
    missing = [key for key in wanted if key not in curve["epochs"][0]["metrics"]]
    if not missing or not stored_epochs(run):
        return
    known = _known(run, "cosine") if _stores_an_epoch(run.read_json("final.json")) else {}
    points, trained = (
        [
            {**point, "metrics": point["metrics"] | more["metrics"]}
            for point, more in zip(curve.get(part, []), _points(run, tested, missing, weights), strict=True)
        ]
        for part, weights in (("epochs", "epoch"), ("trained", "trained"))
    )
    for point in points:
        if point["epoch"] == curve["validated"]:
            point["metrics"] |= {key: known[key] for key in missing if key in known}
    run.write_json("curve.json", _readings(points, curve["validated"], trained))


def _points(run: Run, tested: TestSet, metrics: list[str], weights: str = "epoch") -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for name in stored_epochs(run, weights):
        path = run.file(name)
        try:
            z = torch.from_numpy(np.load(path)).float()
        except UNREADABLE as error:
            raise run.damaged(f"{name} cannot be read ({type(error).__name__})") from error
        if z.ndim != 2 or len(z) != len(tested.labels):
            raise run.damaged(f"{name} holds {tuple(z.shape)} numbers, not those of {len(tested.labels)} test images")
        metrics_then = TestSet(z, tested.labels, tested.roles).evaluate(metrics=metrics).metrics
        points.append({"epoch": int(Path(name).stem.partition("-")[2]), "metrics": metrics_then})
    return points


def _readings(points: list[dict[str, Any]], chosen: int, trained: list[dict[str, Any]]) -> dict[str, Any]:
    best = {}
    for key in points[0]["metrics"]:
        sign = metric_of(key).sign or 1
        best[key] = max(points, key=lambda point: sign * point["metrics"][key])
    return {
        "epochs": points,
        "last": points[-1]["epoch"],
        "validated": chosen,
        "best_on_test": {key: {"epoch": p["epoch"], "value": p["metrics"][key]} for key, p in best.items()},
        **({"trained": trained} if trained else {}),
    }
