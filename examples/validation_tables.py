"""The tables of docs/validation.md, from what `examples/validation.py measure` wrote.

    python examples/validation_tables.py record validation_cub validation_glyphs    docs/results/validation/*.json
    python examples/validation_tables.py render [--check]                           the tables in the page, from these

A point is a setting at one epoch. Its truth is the test of the network that was trained on all training classes with
this setting for so many epochs; a score is what a way of validating says of the same point.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.statistics.choosing import correlation_interval, rank_agreement, regret, resampled_means

PAGE = Path(__file__).parents[1] / "docs" / "validation.md"
RESULTS = PAGE.parent / "results" / "validation"
TABLE = re.compile(r"(<!-- table: (\w+) (\w+) -->\n).*?(<!-- end of table -->)", re.S)
METRICS = {"recall@1": "Recall@1", "map_at_r": "MAP@R"}
GALLERIES = {"validation": "validation images", "all": "and training images"}
DRAWS = 500  # resamples of an interval
TODAY = ("10 classes", "validation", "map_at_r")
Array = np.ndarray


@dataclass(frozen=True)
class Part:
    """Validation classes that are measured together: of one division, against one gallery."""

    means: Array  # (P, C, 2) by point, class and metric
    queries: Array  # (C,)

    def scores(self, metric: int, times: Array) -> Array:
        """The score of every point when classes are drawn again (B, C).                                 (B, P)"""
        return resampled_means(self.means[..., metric], self.queries, times)


@dataclass(frozen=True)
class Way:
    """A way of validating: the mean over its folds. Of a way that needs few classes there are several draws."""

    name: str
    gallery: str
    draws: list[list[Part]]  # draw by draw its folds
    runs: int
    seconds: float  # of training all points, in the mean over settings


class Measured:
    """The lines of one study, of the settings for which all divisions were measured."""

    def __init__(self, lines: list[dict[str, Any]]):
        self.lines = {(line["setting"], line["division"]): line for line in lines}
        self.divisions = list(dict.fromkeys(line["division"] for line in lines))
        known = dict.fromkeys(line["setting"] for line in lines)
        self.settings = [name for name in known if all((name, d) in self.lines for d in self.divisions)]
        self.epochs = list(next(iter(self.lines.values()))["points"])
        self.points = [(setting, epoch) for setting in self.settings for epoch in self.epochs]

    @cached_property
    def losses(self) -> list[str]:
        """The losses; a setting is a loss and a number."""
        return list(dict.fromkeys(setting.rsplit(" ", 1)[0] for setting in self.settings))

    def part(self, division: str, key: str, index: int = 0) -> Part:
        """Of every point the values of a table that `by_class` of examples/validation.py made."""
        table = np.array([self.lines[s, division]["points"][e][key][index] for s, e in self.points])  # (P, C, 3)
        return Part(table[..., :2], table[0, :, 2])

    def seconds(self, divisions: list[str]) -> float:
        """Of the training of these divisions, in the mean over settings."""
        return float(np.mean([sum(self.lines[s, d]["seconds"] for d in divisions) for s in self.settings]))

    def ways(self) -> list[Way]:
        """All ways: those of one run first, few classes first."""
        return sorted(self._ways(), key=lambda way: (way.runs, int(way.name.partition(" ")[0])))

    def _ways(self) -> Iterator[Way]:
        folds: dict[str, list[str]] = {}
        for division in self.divisions:
            if division != "all":
                folds.setdefault(division.partition(":")[0], []).append(division)
        fewest = min((len(divisions) for divisions in folds.values() if len(divisions) > 1), default=0)
        for name, divisions in folds.items():
            whole = self.part(divisions[0], "all").queries.size
            if len(divisions) == fewest:  # its folds are the largest: their parts stand for few classes
                for count in sorted({*self.sizes(divisions[0]), whole}):
                    yield from self.of_parts(count, divisions)
            for gallery, key in (("validation", f"{whole} classes"), ("all", "all")):
                draw = [self.part(division, key) for division in divisions]
                yield Way(name, gallery, [draw], len(divisions), self.seconds(divisions))

    def sizes(self, division: str) -> list[int]:
        """How many classes the parts of the validation classes have."""
        keys = self.lines[self.settings[0], division]["points"][self.epochs[0]]
        return [int(key.partition(" ")[0]) for key in keys if key != "all"]

    def of_parts(self, count: int, divisions: list[str]) -> Iterator[Way]:
        """So many classes of one fold: every fold and every part of it is a draw."""
        among, against = [], []
        for division in divisions:
            whole = self.part(division, "all")
            order = np.random.default_rng(0).permutation(len(whole.queries))  # as in examples/validation.py
            for index, at in enumerate(range(0, len(order) - count + 1, count)):
                among.append([self.part(division, f"{count} classes", index)])
                chosen = np.sort(order[at : at + count])
                against.append([Part(whole.means[:, chosen], whole.queries[chosen])])
        seconds = self.seconds(divisions) / len(divisions)
        yield Way(f"{count} classes", "validation", among, 1, seconds)
        yield Way(f"{count} classes", "all", against, 1, seconds)


def record(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """All that the tables of a study say."""
    measured, random = Measured(lines), np.random.default_rng(0)
    test = measured.part("all", "test")
    size, epochs = len(measured.settings), len(measured.epochs)
    drawn = random.integers(size, size=(DRAWS, size))  # settings, drawn again
    index = (drawn[..., None] * epochs + np.arange(epochs)).reshape(DRAWS, -1)  # (B, P) their points
    classes = resamples(random, len(test.queries))
    truth = {m: (test.scores(k, as_it_is(test))[0], test.scores(k, classes)) for k, m in enumerate(METRICS)}
    rows, correlations = [], {}
    times: dict[str, list[list[Array]]] = {}
    for way in measured.ways():
        if way.name not in times:  # the same for both galleries and metrics: their differences are paired
            times[way.name] = [[resamples(random, len(fold.queries)) for fold in folds] for folds in way.draws]
        for k, metric in enumerate(METRICS):
            score = np.array([np.mean([fold.scores(k, as_it_is(fold))[0] for fold in d], axis=0) for d in way.draws])
            again = [
                np.mean([fold.scores(k, t) for fold, t in zip(folds, ts, strict=True)], axis=0)
                for folds, ts in zip(way.draws, times[way.name], strict=True)
            ]  # of each draw (B, P)
            row = {"way": way.name, "gallery": way.gallery, "metric": metric, "draws": len(way.draws)}
            row |= {"runs": way.runs, "seconds": round(way.seconds, 1)}
            for judge, (value, resampled) in truth.items():
                r = rank_agreement(score, np.broadcast_to(value, score.shape))  # (draws,)
                judged = np.take_along_axis(resampled, index, axis=1)
                rs = np.array([rank_agreement(np.take_along_axis(s, index, axis=1), judged) for s in again])
                correlations[way.name, way.gallery, metric, judge] = float(r.mean()), rs.mean(axis=0)
                ends = np.array([correlation_interval(one, many) for one, many in zip(r, rs, strict=True)])
                lost = [regret(one[index], value[index]) for one in score]
                by_epoch = regret(
                    score.reshape(-1, size, epochs), np.broadcast_to(value, score.shape).reshape(-1, size, epochs)
                )
                row[judge] = {
                    "r": [round(float(x), 4) for x in (r.mean(), *ends.mean(axis=0))],
                    "least": round(float(r.min()), 4),
                    "regret": round(float(np.mean(lost)), 5),
                    "regret of epoch": round(float(by_epoch.mean()), 5),
                }
            rows.append(row)
    best = {judge: float(value.max()) for judge, (value, _) in truth.items()}
    return {
        "settings": size,
        "losses": measured.losses,
        "epochs": [int(epoch) for epoch in measured.epochs],
        "best": best,
        "spread": {judge: float(value.max() - value.min()) for judge, (value, _) in truth.items()},
        "protocols": protocols(measured, {judge: value for judge, (value, _) in truth.items()}),
        "rows": rows,
        "differences": differences(correlations),
    }


def protocols(measured: Measured, truth: dict[str, Array]) -> list[dict[str, Any]]:
    """What a person gets who lets each protocol choose settings and epoch of a loss by MAP@R and then trains on all
    training classes; nothing chosen: the default settings, which are the first of a loss, and the last epoch."""
    of_loss = [
        [i for i, (s, _) in enumerate(measured.points) if s.rsplit(" ", 1)[0] == loss] for loss in measured.losses
    ]
    last, final = len(measured.epochs) - 1, measured.seconds(["all"])
    first = {judge: np.mean([value[points[last]] for points in of_loss]) for judge, value in truth.items()}
    rows = [{"protocol": "nothing chosen", "tries": 0, "runs": 1, "seconds": round(final, 1), **rounded(first)}]
    tries = [len(points) // len(measured.epochs) for points in of_loss]
    for way in measured.ways():
        if way.gallery == "validation":
            got: dict[str, list[float]] = {judge: [] for judge in truth}
            for folds in way.draws:
                score = np.mean([fold.scores(1, as_it_is(fold))[0] for fold in folds], axis=0)
                for points in of_loss:
                    chosen = points[int(score[points].argmax())]
                    for judge, value in truth.items():
                        got[judge].append(value[chosen])
            n = float(np.mean(tries))
            row = {"protocol": way.name, "tries": n, "runs": n * way.runs + 1}
            values = rounded({judge: np.mean(values) for judge, values in got.items()})
            rows.append({**row, "seconds": round(n * way.seconds + final, 1), **values})
    return rows


def rounded(values: dict[str, Any]) -> dict[str, float]:
    """As they are stored."""
    return {name: round(float(value), 5) for name, value in values.items()}


def differences(correlations: dict[tuple[str, str, str, str], tuple[float, Array]]) -> list[dict[str, Any]]:
    """Another way, gallery or metric instead of another, all else equal: the difference of their correlations."""
    names = list(dict.fromkeys(key[0] for key in correlations))
    pairs = [(f"{METRICS['recall@1']} instead of MAP@R", (TODAY[0], "validation", "recall@1"), TODAY)]
    pairs += [("training images in the gallery", (TODAY[0], "all", "map_at_r"), TODAY)]
    pairs += [(f"{name} instead of {TODAY[0]}", (name, *TODAY[1:]), TODAY) for name in names if name != TODAY[0]]
    rows = []
    for name, first, second in pairs:
        row: dict[str, Any] = {"change": name}
        for judge in METRICS:
            (a, many), (b, others) = correlations[(*first, judge)], correlations[(*second, judge)]
            half = 1.96 * float(np.nanstd(many - others, ddof=1))
            row[judge] = [round(x, 4) for x in (a - b, a - b - half, a - b + half)]
        rows.append(row)
    return rows


def resamples(random: np.random.Generator, classes: int) -> Array:
    """How often each class is drawn, resample by resample.                                                    (B, C)"""
    return random.multinomial(classes, np.full(classes, 1 / classes), size=DRAWS)


def as_it_is(part: Part) -> Array:
    """Every class once. (1, C)"""
    return np.ones((1, len(part.queries)))


def ways_table(recorded: dict[str, Any]) -> list[list[str]]:
    """Every way, gallery and metric."""
    table = [["validated on", "among", "by", *(f"correlation with the test's {name}" for name in METRICS.values())]]
    table[0] += [f"regret, {name}" for name in METRICS.values()]
    for row in recorded["rows"]:
        line = [row["way"], GALLERIES[row["gallery"]], METRICS[row["metric"]]]
        line += [interval(row[judge]["r"]) for judge in METRICS]
        table.append([*line, *(f"{100 * row[judge]['regret']:.2f}" for judge in METRICS)])
    return table


def epochs_table(recorded: dict[str, Any]) -> list[list[str]]:
    """What choosing the epoch of each run loses."""
    table = [["validated on", "among", "by", *(f"regret of the epoch, {name}" for name in METRICS.values())]]
    for row in recorded["rows"]:
        values = [f"{100 * row[judge]['regret of epoch']:.2f}" for judge in METRICS]
        table.append([row["way"], GALLERIES[row["gallery"]], METRICS[row["metric"]], *values])
    return table


def differences_table(recorded: dict[str, Any]) -> list[list[str]]:
    """What one change does to the correlation."""
    table = [["instead of 10 classes among themselves by MAP@R", *(f"with the test's {n}" for n in METRICS.values())]]
    for row in recorded["differences"]:
        table.append([row["change"], *(interval(row[judge], "+") for judge in METRICS)])
    return table


def protocols_table(recorded: dict[str, Any]) -> list[list[str]]:
    """Score and cost of every protocol."""
    table = [
        ["settings and epoch by", "settings tried", "runs", "CPU seconds", *(f"test {n} %" for n in METRICS.values())]
    ]
    for row in recorded["protocols"]:
        values = [f"{100 * row[judge]:.2f}" for judge in METRICS]
        cost = [f"{row['tries']:.3g}", f"{row['runs']:.3g}", f"{row['seconds']:.1f}"]
        table.append([row["protocol"], *cost, *values])
    return table


TABLES = {"ways": ways_table, "epochs": epochs_table, "differences": differences_table, "protocols": protocols_table}


def interval(values: list[float], sign: str = "") -> str:
    """A value and its interval, with two digits."""
    value, low, high = (f"{x:{sign or '-'}.2f}" for x in values)
    return f"{value} ({low} to {high})"


def markdown(table: list[list[str]]) -> str:
    """The table as Markdown; what begins with a digit or a sign stands at the right."""
    right = [cell[:1] in "+-.0123456789" and column > 0 for column, cell in enumerate(table[-1])]
    lines = [table[0], ["---:" if side else "---" for side in right], *table[1:]]
    return "\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def rendered(text: str) -> str:
    """The page with all its tables made again."""

    def table(match: re.Match[str]) -> str:
        recorded = json.loads((RESULTS / f"{match[2]}.json").read_text())
        points = recorded["settings"] * len(recorded["epochs"])
        losses = ", ".join(recorded["losses"])
        epochs = ", ".join(str(epoch) for epoch in recorded["epochs"])
        words = f"{points} points: {recorded['settings']} settings of {losses}; epochs {epochs}."
        return match[1] + markdown(TABLES[match[3]](recorded)) + words + "\n\n" + match[4]

    return TABLE.sub(table, text)


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("studies", nargs="+")
    recorder.add_argument("--runs", type=Path, default=Path("runs"))
    commands.add_parser("render").add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.command == "record":
        RESULTS.mkdir(parents=True, exist_ok=True)
        for name in given.studies:
            lines = [json.loads(line) for line in (given.runs / f"{name}.jsonl").read_text().splitlines()]
            recorded = json.dumps(record(lines)).replace('{"way"', '\n{"way"')
            (RESULTS / f"{name.removeprefix('validation_')}.json").write_text(recorded + "\n")
        return 0
    text = PAGE.read_text()
    if (new := rendered(text)) != text:
        if given.check:
            print("docs/validation.md does not say what was measured: make validation")
            return 1
        PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
