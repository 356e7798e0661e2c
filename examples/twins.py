"""The ready studies that are published tables: all of them run in small, and what they do otherwise on purpose.

python examples/twins.py run [NAME ...]     each on glyphs: one seed, one epoch, four images per class; goes on where
                                            it was stopped; NAME: only studies whose path begins so, as roth2020
python examples/twins.py render             the list of intended differences in docs/fidelity.md, from their files
python examples/twins.py render --check     the same without writing: 1 where the page differs
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import nearkin
from nearkin.analysis import analyse_study
from nearkin.studies.twin import parse_differs, parse_twin, twin_words

ROOT = Path(__file__).parents[1]
STUDIES, PAGE = ROOT / "studies", ROOT / "docs" / "fidelity.md"
LIST = re.compile(r"(<!-- twins -->\n).*?(<!-- end of twins -->)", re.S)
SMALL = {"epochs": 1, "data.per_class": 4}
WITHIN = {"epochs": 1, "data.per_class": 6}  # known classes: some images of each train, validate and test


def files(names: Sequence[str] = ()) -> list[Path]:
    """The files of the ready studies with a twin, or those of them whose path begins with one of these names."""
    twins = [file for file in sorted(STUDIES.rglob("*.yaml")) if "twin" in yaml.safe_load(file.read_text())]
    return [file for file in twins if not names or _name(file).startswith(tuple(names))]


def _name(file: Path) -> str:
    return file.relative_to(STUDIES).with_suffix("").as_posix()


def small(file: Path) -> dict[str, Any]:
    """A study on glyphs with one seed."""
    content = yaml.safe_load(file.read_text())
    return {"name": file.stem, **content, "seeds": [0], "real": {}}


def words_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """The words that make its runs short."""
    return dict(WITHIN if content["base"].get("protocol") == "within" else SMALL)


def run(names: Sequence[str], runs: str, workers: int) -> int:
    """Carry the small forms out, one study after the other; how many runs failed."""
    failed = 0
    for file in files(names):
        content = small(file)
        done = nearkin.study(content, words_of(content), runs=runs, workers=workers)
        for _ in analyse_study(done.study, runs):
            pass
        states = [job.state for job in done.jobs]
        failed += states.count("failed")
        print(
            f"{_name(file)}: {states.count('done')} of {len(states)} runs, {states.count('failed')} failed", flush=True
        )
    return failed


def listed() -> str:
    """The intended differences as a table in Markdown."""
    lines = ["| study | twin of | what differs, or is not stated | why, or what is supposed |", "|---|---|---|---|"]
    for file in files():
        content = yaml.safe_load(file.read_text())
        names = [f"`{_name(file)}`", twin_words(parse_twin(content["twin"], file.name))]
        for what, why in parse_differs(content.get("differs"), file.name).items() or [("nothing", "")]:
            lines.append(_row([*names, what, why]))
            names = ["", ""]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace(" | ", ", ").replace("|", r"\|") for cell in cells) + " |"


def rendered(text: str) -> str:
    """A page with the list as the files say it."""
    return LIST.sub(lambda match: f"{match[1]}\n{listed()}\n\n{match[2]}", text)


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run")
    runner.add_argument("names", nargs="*")
    runner.add_argument("--runs", default="runs/twins")
    runner.add_argument("--workers", type=int, default=1)
    commands.add_parser("render").add_argument("--check", action="store_true")
    words = parser.parse_args()
    if words.command == "run":
        return int(run(words.names, words.runs, words.workers) > 0)
    text = PAGE.read_text()
    if words.check and rendered(text) != text:
        print("docs/fidelity.md does not list what the twins say: make differences")
        return 1
    PAGE.write_text(rendered(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
