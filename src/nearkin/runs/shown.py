"""A run as it prints itself: its data, its settings, its honest numbers and the pooled baseline, one line each."""

from typing import Any

from markupsafe import Markup

from nearkin.config.parse import flatten
from nearkin.errors import NearkinError
from nearkin.runs.listing import describe
from nearkin.runs.result import Result, blended, estimated
from nearkin.runs.store import Run, Store

METRICS = ("map_at_r", "recall@1")
NETWORK = ("data.size", "data.resize", "model.backbone", "model.weights", "model.pool", "model.norm", "train.seed")


def shown(run: Run) -> str:
    """The lines of a run, whatever its state; nothing is computed and nothing raised."""
    lines = {"run": f"{run.hash} in {run.path.parent}"}
    try:
        lines |= _lines(run)
    except NearkinError as error:
        lines["state"] = str(error)
    return "\n".join(f"{name:<8}  {line}" for name, line in lines.items())


def html(run: Run) -> str:
    """The same lines for a notebook, and below them the table of a final run's metrics."""
    lines = Markup("<pre>{}</pre>").format(shown(run))
    try:
        tables = [table.html() for table in result_of(run).tables] if run.final else []
    except NearkinError:  # the lines say that it is damaged
        tables = []
    return str(Markup("\n").join([lines, *tables]))


def result_of(run: Run) -> Result:
    """A final run's metrics, beside those of the pooled features without training where they are stored."""
    if not run.final:
        raise NearkinError(f"run {run.hash} has no metrics yet: start the same training again to finish it")
    return Result(run, pooled_baseline(run))


def _lines(run: Run) -> dict[str, str]:
    here = f"{run.hash} in {run.path.parent}"
    if not run.has("spec.yaml"):
        return {"run": f"{here}: nothing is stored"}
    lines = {"run": f"{here}: {'tested' if run.tested else run.purpose}", "settings": describe(run.stored)}
    if not run.final:
        return {**lines, "chosen": "not finished: start the same training again to finish it"}
    final = run.read_json("final.json")
    chosen = f"epoch {final['epoch']} of {final['epochs_trained']}{blended(final)}, {final['rule']}"
    lines = {"run": lines["run"], "data": f"{run.stored['data']['name']}: {final['split']}", **lines}
    lines["chosen"] = chosen + (f" by {final['select']}" if final["select"] else "")
    if not final["epochs_trained"]:
        lines["chosen"] = "untrained"
    if final["validation"]:
        lines["chosen"] += f": validation {_figures(final['validation'])}"
    if not run.tested:
        lines["test"] = f"not tested: {run.untested('nearkin.test(run)')}"
        return lines | {name: words for name, _, words in (line.partition(": ") for line in estimated(run))}
    lines["test"] = _figures(run.metrics())
    if final["epochs_trained"] or run.stored["model"]["head"] != "none":
        pooled = pooled_baseline(run)
        call = 'nearkin.train(run.spec, epochs=0, model={"head": "none"})'
        words = f"not measured: {call}" if pooled is None else f"{_figures(pooled.metrics())}, without training"
        lines["pooled"] = words
    return lines


def _figures(metrics: dict[str, Any]) -> str:
    return ", ".join(f"{name} {100 * metrics[name]:.2f} %" for name in METRICS if metrics.get(name) is not None)


def pooled_baseline(run: Run) -> Run | None:
    """The pooled features of the same network without training, tested on the same images; None: not in its store."""
    wanted = _of_network(run)
    for other in Store(run.path.parent).runs():
        try:
            if other.stored["model"]["head"] != "none" or other.stored["train"]["epochs"] != 0 or not other.tested:
                continue
            if _of_network(other) == wanted:
                return other
        except NearkinError:  # damaged, or removed in the meantime
            continue
    return None


def _of_network(run: Run) -> tuple[Any, ...]:
    words = flatten(run.stored)
    return (run.head()["data_hash"], run.head()["split_hash"], *(words.get(key) for key in NETWORK))
