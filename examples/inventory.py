"""The inventory of docs/fidelity.md, from `src/nearkin/literature/data/inventory.json`.

    python examples/inventory.py                write the tables between the markers of docs/fidelity.md
    python examples/inventory.py --check        the same without writing: 1 where the page differs

After an edit of the data (one item per line) run the first; a test runs the second.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

from nearkin.literature.inventory import MARKS, Item, items, parts

PAGE = Path(__file__).parents[1] / "docs" / "fidelity.md"
TABLES = re.compile(r"(<!-- inventory -->\n).*?(<!-- end of inventory -->)", re.S)
ABOUT = """
The five sources, item by item, and at the end every table and figure (N). {marks}. Numbers are the sources' own;
letters as above. A place is a file (below `src/nearkin` or the project), the words of a run, or a command.
`nearkin published --inventory` prints the same.

● says that it is built and tested on small data, not that a published figure was reached. What cannot be had here:
official weights of ResNet50, GoogLeNet and BN-Inception; Cars196, SOP, In-Shop and ImageNet; CUB larger than 128 px; a
GPU. So no table of the sources was trained at its real size.
"""


def render() -> str:
    """All parts, as Markdown."""
    counts = Counter(item.mark for item in items())
    marks = ", ".join(f"{mark} {words}: {counts[mark]}" for mark, words in MARKS.items())
    lines = [ABOUT.format(marks=marks)]
    for letter, heading in parts().items():
        lines += [f"### {letter}. {heading}", "", "| id | item | source | | where | what is missing, or to know |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [row(item) for item in items() if item.part == letter]
        lines.append("")
    return "\n".join(lines)


def row(item: Item) -> str:
    """One item as a line of a table."""
    where = ", ".join(f"`{place}`" for place in item.where)
    cells = [item.id, item.item, item.source, item.mark, where, item.missing]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    tables = render()
    made = TABLES.sub(lambda match: match[1] + tables + match[2], page)
    if check and made != page:
        print("docs/fidelity.md does not say what the inventory says: python examples/inventory.py")
    if not check:
        PAGE.write_text(made, encoding="utf-8")
    return int(check and made != page)


if __name__ == "__main__":
    sys.exit(main())
