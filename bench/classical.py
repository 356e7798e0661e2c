"""The classical methods on vectors: k-NN error and seconds on four data sets, and speed at n = 2,000, d = 64.

    make bench-classical                        # about 3 minutes; writes docs/results/classical/knn.json and the page
    python bench/classical.py --render          # docs/classical.md from docs/results/classical/knn.json
    python bench/classical.py --check           # 1 where the page differs

Five splits of 70 to 30 %, drawn with seeds 0 to 4, stratified; 3 nearest neighbours; CPU seconds of one thread.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import FunctionTransformer

from nearkin.classical import (
    ITML,
    LMNN,
    MCML,
    MMC,
    POLA,
    GeneralMetric,
    KwokTsang,
    SchultzJoachims,
    draw_pairs,
    vectors,
)

DOCS = Path(__file__).parents[1] / "docs"
PAGE, VALUES = DOCS / "classical.md", DOCS / "results" / "classical" / "knn.json"
TABLES = re.compile(r"(<!-- classical -->\n).*?(<!-- end of classical -->)", re.S)
SETS = ("iris", "wine", "balance", "digits")
SPLITS = 5
METHODS: dict[str, Any] = {
    "Euclidean": lambda: FunctionTransformer(),
    "LDA": lambda: LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    "NCA": lambda: NeighborhoodComponentsAnalysis(init="pca", max_iter=50, random_state=0),
    "general, ½‖A‖²": lambda: GeneralMetric(),
    "general, tr(AC)": lambda: GeneralMetric(regulariser="scatter", relations="triplets"),
    "LMNN": LMNN,
    "MCML": MCML,
    "POLA": POLA,
    "Schultz-Joachims": SchultzJoachims,
    "Kwok-Tsang": KwokTsang,
    "ITML": ITML,
    "MMC": MMC,
}
# metric-learn 0.7.0 beside scikit-learn 1.5.2, on the rows of `many`, one thread of the machine of this page's values
THEIRS = {"ITML": 1.70, "NCA": 2.64}


def error_and_seconds(method: Any, name: str, seed: int) -> tuple[float, float]:
    """Share of test rows with a wrong class, and the CPU seconds of learning."""
    x, y = vectors(name)
    train, test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    start = time.process_time()
    learned = method().fit(train, y_train)
    seconds = time.process_time() - start
    neighbours = KNeighborsClassifier(3).fit(learned.transform(train), y_train)
    return float(1 - neighbours.score(learned.transform(test), y_test)), seconds


def many() -> tuple[np.ndarray, np.ndarray]:
    """2,000 rows of 64 numbers in 20 classes."""
    random = np.random.default_rng(0)
    centres, y = random.normal(size=(20, 64)) * 0.9, np.arange(2000) % 20
    x = centres[y] + random.normal(size=(2000, 64))
    return x / x.std(0), y


def seconds_of_many() -> dict[str, float]:
    """CPU seconds at n = 2,000, d = 64."""
    (x, y), seconds = many(), {}
    for name, learn in {
        "ITML": lambda: ITML().fit_pairs(x, *draw_pairs(y, 2000, 0)),
        "NCA": lambda: METHODS["NCA"]().fit(x, y),
        "LMNN": lambda: LMNN().fit(x, y),
    }.items():
        start = time.process_time()
        learn()
        seconds[name] = round(time.process_time() - start, 2)
    return seconds


def interval(values: list[float]) -> str:
    """Mean and half of its 95 % interval over splits, in %."""
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{100 * np.mean(values):.1f} ± {100 * half:.1f}"


def render(values: dict[str, Any]) -> str:
    """Both tables, as Markdown."""
    names = list(next(iter(values["splits"].values())))
    lines = ["", "| 3-NN error, % | " + " | ".join(f"{name} | s" for name in names) + " |"]
    lines.append("|:--" + "|--:" * 2 * len(names) + "|")
    for method, sets in values["splits"].items():
        cells = []
        for name in names:
            errors, seconds = zip(*sets[name], strict=True)
            cells += [interval(list(errors)), f"{np.mean(seconds):.2f}"]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    if values["many"]:
        lines += ["", "| n = 2,000, d = 64, CPU seconds | nearkin | metric-learn 0.7.0 |", "|:--|--:|--:|"]
    for method, seconds in values["many"].items():
        theirs = THEIRS.get(method)
        lines.append(f"| {method} | {seconds:.2f} | {'–' if theirs is None else f'{theirs:.2f}'} |")
    return "\n".join([*lines, "", ""])


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    asked = parser.parse_args()
    if not (asked.render or asked.check):
        values: dict[str, Any] = {"splits": {}, "many": {}}
        for method, make in METHODS.items():
            row = values["splits"][method] = {}
            for name in asked.sets:
                results = [error_and_seconds(make, name, seed) for seed in range(SPLITS)]
                row[name] = [(round(error, 6), round(seconds, 3)) for error, seconds in results]
                print(method, name, interval([error for error, _ in results]), flush=True)
            VALUES.write_text(json.dumps(values, indent=1) + "\n")
        values["many"] = seconds_of_many()
        VALUES.write_text(json.dumps(values, indent=1) + "\n")
    page = PAGE.read_text()
    made = TABLES.sub(lambda match: match[1] + render(json.loads(VALUES.read_text())) + match[2], page)
    if asked.check and made != page:
        print("docs/classical.md does not say what its values say: python bench/classical.py --render")
    if not asked.check:
        PAGE.write_text(made)
    return int(asked.check and made != page)


if __name__ == "__main__":
    sys.exit(main())
