"""The tables of docs/, from recorded values: a page cannot say what `nearkin compare` does not.

    python examples/results.py record losses --runs runs     docs/results/losses.json, from the runs of a stored study
    python examples/results.py render                        the tables between the markers of docs/*.md, from them
    python examples/results.py render --check                the same without writing: 1 where a page differs

A file holds every run's values (seed, fold, setting) of every metric of its study, and of the metric that is judged the
values by class. A page holds a table where it has two lines

    <!-- table: losses -->
    <!-- end of table -->
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.comparison.compare import WITHIN, Comparison, best_first, compare
from nearkin.comparison.gather import Gathered, gather
from nearkin.comparison.method import Method
from nearkin.comparison.rows import methods_of
from nearkin.comparison.tables import RANK, differences
from nearkin.comparison.verdicts import amount, first_family, ranks, span, untrained_pairs, verdict_words
from nearkin.comparison.words import first_words
from nearkin.evaluation.metrics.base import metric_of
from nearkin.present import sentence
from nearkin.statistics.unit import ByClass, Key, Place, Row

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("results.md", "which-loss.md", "analyses.md", "tuning.md")
TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.S)


def record(gathered: Gathered, metric: str) -> dict[str, Any]:
    """Everything that the table of a stored study rests on, as plain values. `metric` is what is judged."""
    (judged,) = compare(gathered, metric=metric)
    metrics = list(dict.fromkeys([f"validation {gathered.select}", *gathered.metrics, metric]))
    by_metric = {name: _rows(gathered, judged, name) for name in metrics}
    rows, classes, queries = [], (), []
    for method in judged.methods:
        runs = []
        for key in method.row.members:
            values = {
                name: row[method.name].members[key]
                for name, row in by_metric.items()
                if key in row[method.name].members
            }
            stored = method.row.by_class(key)
            if stored is not None:
                classes, queries = stored.classes, stored.queries.tolist()
            runs.append(
                {
                    "seed": key.seed,
                    "fold": key.place.fold,
                    "setting": list(key.place.setting),
                    "values": values,
                    "by_class": None if stored is None else [round(float(x), 6) for x in stored.means],
                }
            )
        rows.append({"name": method.name, "kind": method.kind, "queries": method.row.queries, "runs": runs})
    return {
        "study": gathered.name,
        "data": judged.data,
        "metric": metric,
        "select": gathered.select,
        "metrics": metrics,
        "settings": list(judged.block_keys),
        "classes": list(classes),
        "queries": queries,
        "notes": judged.notes,
        "rows": rows,
    }


def _rows(gathered: Gathered, judged: Comparison, metric: str) -> dict[str, Row]:
    by = [axis for axis in gathered.axes if axis not in judged.block_keys] or ["loss"]
    return {method.name: method.row for method in methods_of(gathered, gathered.tested, by, metric)}


def load(recorded: Mapping[str, Any]) -> Comparison:
    """The comparison that was recorded."""
    metric, bounds = recorded["metric"], metric_of(recorded["metric"]).bounds
    methods = []
    for row in recorded["rows"]:
        validation = row_of(recorded, row, f"validation {recorded['select']}")
        methods.append(Method(row["kind"], row_of(recorded, row, metric), [], validation, bounds))
    methods = best_first(methods, metric)
    keys, within = tuple(recorded["settings"]), WITHIN if metric_of(metric).is_share else None
    select = recorded["select"]
    return Comparison(recorded["data"], metric, methods, keys, recorded["notes"], within=within, select=select)


def row_of(recorded: Mapping[str, Any], row: Mapping[str, Any], metric: str) -> Row:
    """A recorded row by one of its metrics."""
    runs = {Key(run["seed"], Place(tuple(run["setting"]), run["fold"])): run for run in row["runs"]}
    values = {key: run["values"][metric] for key, run in runs.items() if metric in run["values"]}

    def by_class(key: Key) -> ByClass | None:
        means = runs[key]["by_class"]
        if means is None:
            return None
        return ByClass(tuple(recorded["classes"]), np.array(means), np.array(recorded["queries"]))

    if metric != recorded["metric"]:
        return Row(row["name"], values)
    return Row(row["name"], values, row["queries"], by_class)


def render(recorded: Mapping[str, Any]) -> str:
    """The table of a study and the sentences of its verdicts, as Markdown. Rows are sorted by validation."""
    comparison, metric = load(recorded), recorded["metric"]
    judged = {pair.first.name: pair for pair in (*first_family(comparison).pairs, *untrained_pairs(comparison))}
    may_be, reference = ranks(comparison), comparison.reference
    kinds = {method.name: method.kind for method in comparison.methods}
    columns = recorded["metrics"]
    unit = "points" if metric_of(metric).is_share else ""
    header = [
        "method",
        "kind",
        *(f"{name} %" if metric_of(name).is_share else name for name in columns),
        f"rank by {metric}",
        f"difference, {unit}",
        "95 % interval",
        "verdict",
    ]
    lines = [header, ["---", "---", *["---:"] * (len(columns) + 3), "---"]]
    for row in sorted(recorded["rows"], key=lambda row: _order(recorded, row)):
        pair = judged.get(row["name"])
        d = None if pair is None else pair.difference
        verdict = "the reference" if reference is not None and row["name"] == reference.name else "–"
        if pair is not None:
            trained = kinds[row["name"]] != "untrained"
            verdict = verdict_words(pair, metric) if trained else "untrained: beside the family"
        lines.append(
            [
                row["name"],
                row["kind"],
                *(_cell(recorded, row, name) for name in columns),
                RANK.text(dict(zip(("rank", "rank_high"), may_be.get(row["name"], (None, None)), strict=True))),
                "–" if d is None else amount(metric, d.mean, signed=True),
                "–" if d is None else span(metric, d.low, d.high, signed=True),
                verdict,
            ]
        )
    table = "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
    seeds = sorted({run["seed"] for row in recorded["rows"] for run in row["runs"]})
    words = [f"mean ± standard deviation over {len(seeds)} seeds; verdicts by {metric}", *first_words(comparison)]
    words += differences(comparison, first_family(comparison), "").notes
    return f"\n{table}\n\n" + " ".join(sentence(word) for word in words) + "\n\n"


def _order(recorded: Mapping[str, Any], row: Mapping[str, Any]) -> float:
    values = row_of(recorded, row, f"validation {recorded['select']}").values
    return -(metric_of(recorded["select"]).sign or 1) * statistics.fmean(values.values()) if values else float("inf")


def _cell(recorded: Mapping[str, Any], row: Mapping[str, Any], metric: str) -> str:
    values = list(row_of(recorded, row, metric).values.values())
    if not values:
        return "–"
    spread = f" ± {amount(metric, statistics.stdev(values))}" if len(values) > 1 else ""
    return amount(metric, statistics.fmean(values)) + spread


def rendered(text: str) -> str:
    """A page with all its tables rendered anew."""

    def table(match: re.Match[str]) -> str:
        file = DOCS / "results" / f"{match[2]}.json"
        return match[1] + render(json.loads(file.read_text())) + match[3]

    return TABLE.sub(table, text)


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("study")
    recorder.add_argument("--runs", default="runs")
    recorder.add_argument("--metric", default="map_at_r")
    commands.add_parser("render").add_argument("--check", action="store_true")
    words = parser.parse_args()
    if words.command == "record":
        values = record(gather([words.study], words.runs), words.metric)
        file = DOCS / "results" / f"{words.study}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(values, ensure_ascii=False).replace('{"name"', '\n{"name"') + "\n")
        print(f"{file}: {len(values['rows'])} rows")
        return 0
    stale = [name for name in PAGES if rendered((DOCS / name).read_text()) != (DOCS / name).read_text()]
    for name in stale:
        if words.check:
            print(f"docs/{name} does not say what its runs say: make results")
        else:
            (DOCS / name).write_text(rendered((DOCS / name).read_text()))
    return int(bool(stale and words.check))


if __name__ == "__main__":
    sys.exit(main())
