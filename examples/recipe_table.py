"""The tables of docs/recipe.md, from the lines that `examples/recipe.py -o docs/results/recipe.jsonl` wrote.

    python examples/recipe_table.py             write the table between the markers of docs/recipe.md
    python examples/recipe_table.py --check     the same without writing: 1 where the page differs

A row is one reading of all trainings with the same settings: what it gained over the pooled feature of the untrained
network on classes that no training saw, as a mean over folds and draws, and the worst of them.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[1] / "docs"
PAGE, LINES = DOCS / "recipe.md", DOCS / "results" / "recipe.jsonl"
TABLE = re.compile(r"(<!-- recipe -->\n).*?(<!-- end of recipe -->)", re.S)
DRAWN = re.compile(r" *protocol\.(fold|seed)=\d+")  # which part of the classes: rows are means over them
ALIKE = re.compile(r" *(weights=imagenet|loss=proxy_anchor|protocol=cross|protocol\.share=0)\b")  # of all rows
HEADER = ["data", "training", "weights", "n", "Recall@1 gained", "worst", "MAP@R gained", "worst"]


def render(lines: Iterable[str]) -> str:
    """The table, as Markdown."""
    groups: dict[tuple[str, str], list[dict[str, list[float]]]] = {}
    for line in lines:
        record = json.loads(line)
        words = ALIKE.sub("", DRAWN.sub("", record["words"])).strip()
        groups.setdefault((record["data"], words), []).append(record["readings"])
    rows = [HEADER, [":--", ":--", ":--", *["--:"] * 5]]
    for (data, words), trainings in sorted(groups.items()):
        pooled = np.array([readings["pooled"] for readings in trainings])  # (n, 2): Recall@1 and MAP@R, in %
        mean = " / ".join(f"{value:.1f}" for value in pooled.mean(0))
        rows.append([data, f"`{words}`", f"pooled, untrained: {mean}", str(len(trainings)), *["–"] * 4])
        for name in dict.fromkeys(name for readings in trainings for name in readings if name != "pooled"):
            gained = np.array([np.subtract(r[name], r["pooled"]) for r in trainings if name in r])  # (n, 2)
            cells = [f"{value:+.1f}" for both in zip(gained.mean(0), gained.min(0), strict=True) for value in both]
            rows.append(["", "", name, str(len(gained)), *cells])
    return "\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n\n"


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    page = PAGE.read_text()
    table = render(LINES.read_text().splitlines())
    made = TABLE.sub(lambda match: match[1] + table + match[2], page)
    if check and made != page:
        print("docs/recipe.md does not say what its lines say: python examples/recipe_table.py")
    if not check:
        PAGE.write_text(made)
    return int(check and made != page)


if __name__ == "__main__":
    sys.exit(main())
