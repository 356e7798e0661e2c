"""A ready study beside the published tables that it names: each row, column, seed and constant not as printed.

What rows and columns mean is in `fixtures/rows.json`, the settings of papers are in `fixtures/papers.json`. A recipe
is a source too: what a study sets otherwise than its recipe is a difference, unless one of those files has that value.
Columns and baselines that a study has beside those of its table are no difference.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from nearkin.config.parse import canonical, flatten
from nearkin.config.recipes import Recipe
from nearkin.config.spec import make_spec
from nearkin.literature.tables import _read
from nearkin.runs.defaults import complete, fill
from nearkin.studies.twin import FIGURE, parts_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
ROWS = json.loads((FIXTURES / "rows.json").read_text())
PAPERS = json.loads((FIXTURES / "papers.json").read_text())
FIGURES = {raw["id"]: _read(raw) for raw in ROWS["figures"]}
DATA = {"CUB200-2011": "cub", "Cars196": "cars196", "SOP": "sop", "ImageNet": "imagenet"}
NETWORKS = {"ResNet50": "resnet50", "BN-Inception": "bn_inception", "GoogLeNet": "googlenet"}
# of HIST and Kobs the rows that repeat the reality check are named as there
MEANINGS = {
    "hist_t8": ("mlrc2020", "hist2022"),
    "hist_t9": ("mlrc2020", "hist2022"),
    "drml_t1": ("drml2021", "mlrc2020"),
    "drml_t2": ("drml2021", "mlrc2020"),
    "kobs2021": ("kobs2021", "mlrc2020"),
}
PLACE = {"model.backbone", "model.dim", "protocol.fold", "train.seed", "data.root"}  # compared by themselves, or free


@dataclass(frozen=True)
class Difference:
    """One thing that a study does not have as printed.

    Parameters:
        table: the published table.
        row: of the table; "" where the table as a whole is meant.
        what: `row NAME`, `column NAME`, `seeds`, `reading NAME`, or the key of a setting.
        words: what is there, and what was published.
    """

    table: str
    row: str
    what: str
    words: str

    def __str__(self):
        return f"{self.table}{f', row {self.row}' if self.row else ''}: {self.what}: {self.words}"

    @property
    def names(self):
        """By which of these `differs:` may list it: for all rows, or for this one."""
        return {self.what, f"{self.row}: {self.what}"}


def differences(study):
    """Everything that a study in its real form has otherwise than its twin."""
    made, matched = [], set()
    for table in twins(study.twin):
        made += [*_columns(study, table), *_rows(study, table, matched)]
    trained = {_place(study, cell): cell for cell in study.cells if cell.baseline is None}
    for (data, labels), cell in trained.items():
        if (data, labels) not in matched:
            name = " ".join(labels) or study.name
            made.append(Difference(" ".join(study.twin), "", f"row {name}", f"on {cell.spec.data.name}, in no table"))
    return list(dict.fromkeys(made))


def unlisted(study):
    """The differences that the file does not list, and what it lists although nothing differs there."""
    made = differences(study)
    listed = {name for key in study.differs for name in names_of(key)}
    missing = [str(one) for one in made if not one.names & listed]
    present = {name for one in made for name in one.names}
    stale = [
        f"differs: {name}: nothing differs there" for name in sorted(listed) if is_checked(name) and name not in present
    ]
    return missing + stale


def names_of(key):
    """`row A | B` stands for row A and row B."""
    kind, _, rest = key.partition(" ")
    return [f"{kind} {name}" for name in rest.split(" | ")] if kind in ("row", "column") else [key]


def is_checked(name):
    """Is this a name that a difference has? All else in `differs:` is a note in words."""
    what = name.rpartition(": ")[2]
    return what.startswith(("row ", "column ", "reading ")) or bool(re.fullmatch(r"seeds|[a-z_]+(\.\w+)+", what))


def twins(names):
    """The published tables and figures of these names."""
    return [t for name in names for t in ([FIGURES[name]] if FIGURE.fullmatch(name) else parts_of(name))]


def has_untrained(names):
    """Has one of these tables a row of an untrained network?"""
    return any("baseline" in _meaning(t, "rows").get(row.method, {}) for t in twins(names) for row in t.rows)


def _columns(study, table):
    made = _meaning(table, "made")
    for column in table.columns:
        if column.part in ("concatenated", "separated") and column.part not in study.evaluations:
            yield Difference(table.id, "", f"column {column}", f"evaluations are {', '.join(study.evaluations)}")
        if column.name in made:
            if made[column.name] == "saliency" and "saliency" not in study.analyses:
                yield Difference(
                    table.id, "", f"column {column}", "comes from `analyses: [saliency]`, which is missing"
                )
            continue
        metric = ROWS["columns"].get(column.name, column.name)
        data = DATA.get(column.part or table.dataset[0])
        columns = study.columns_on(data)
        if metric not in columns:
            yield Difference(table.id, "", f"column {column}", f"no {metric} among {', '.join(columns)}")
    for protocol, reading in ROWS["readings"].items():
        if protocol in table.protocol and reading not in study.readings:
            yield Difference(table.id, "", f"reading {reading}", f"published; here {', '.join(study.readings)}")


def _rows(study, table, matched):
    for data in table.dataset:
        on = [cell for cell in study.cells if cell.spec.data.name == DATA[data]]
        if not on:
            yield Difference(table.id, "", f"data {DATA[data]}", "not in the study")
            continue
        for network, dim in _places(table):
            here = [c for c in on if (network or c.spec.model.backbone) == c.spec.model.backbone]
            if dim and any(c.spec.model.dim == dim for c in here):
                here = [c for c in here if c.baseline or c.spec.model.dim == dim]
            for row in table.rows:
                yield from _row(study, table, row, here, {"model.backbone": network, "model.dim": dim}, matched)


def _row(study, table, row, here, place, matched):
    name = " ".join([row.method, *map(str, row.where.values())])
    protocols = [settings for words, settings in ROWS["protocols"].items() if words in table.protocol]
    of_table = {key: value for one in protocols for key, value in one.items()} | ROWS["tables"].get(table.id, {})
    protocol = of_table.get("protocol.name")
    if any(cell.spec.protocol.name == protocol for cell in here):  # else its rows are named as differing
        here = [cell for cell in here if cell.spec.protocol.name == protocol]
    settings = of_table | _meaning(table, "rows").get(row.method, {})
    where = _meaning(table, "where")
    for key, value in row.where.items():
        settings |= where.get(key, {}).get(str(value), {})
    baseline = settings.pop("baseline", None)
    if baseline:
        if not any(cell.baseline == baseline for cell in here):
            yield Difference(table.id, "", f"row {name}", f"no untrained {baseline} row")
        return
    several = len(table.methods) > 1 or any(row.method in cell.labels for cell in here)
    words = {row.method.lower()} if several else set()
    words |= {str(value).lower() for key, value in row.where.items() if where.get(key)}
    free = {key for key, value in row.where.items() if value is None}  # any value is the row
    fold, name = row.where.get("fold"), name.removesuffix(" None")
    cells = {}
    for cell in here:
        mine = cell.fold is None or fold is None or cell.fold == fold - 1
        labels = {label.lower() for label in cell.labels}
        if not cell.baseline and mine and (words <= labels or name.lower() in labels):
            cells.setdefault(_place(study, cell), []).append(cell)
    matched |= set(cells)
    if not cells:
        yield Difference(table.id, "", f"row {name}", "not in the study")
    elif len({labels for _, labels in cells}) > 1 and not free:
        yield Difference(table.id, "", f"row {name}", f"{len(cells)} rows of the study have its name")
    for same in cells.values():
        seeds = len({cell.seed for cell in same})
        if table.runs not in (None, seeds):
            yield Difference(table.id, name, "seeds", f"{seeds}, published {table.runs}")
        of_row = {**settings, **{key: value for key, value in place.items() if value}}
        for key, value, there, source in _settings(same[0].spec, of_row):
            if key not in free:
                yield Difference(table.id, name, key, f"{value!r}, {source}: {there!r}")


def _settings(spec, of_row):
    """(key, value here, value there, where) of every setting that is not as row, paper or recipe has it."""
    found = flatten(complete(fill(spec)).whole())
    expected = {key: (value, "published") for key, value in of_row.items()}
    for line, case in _papers(spec.recipe):
        if line["key"] not in of_row and all(_same(found.get(key), value) for key, value in case.items()):
            expected[line["key"]] = line["value"], line["where"]
    for key, (value, where) in expected.items():
        if not _same(found.get(key), value):
            yield key, found.get(key), value, where
    recipe = Recipe.named(spec.recipe).overridden(found) if spec.recipe else {"recipe": ("one of the source", None)}
    recipe = recipe if spec.train.epochs else {}  # nothing reads them
    for key, (there, value) in recipe.items():
        if key not in expected and key not in PLACE and not _same(value, there):
            yield key, value, there, f"recipe={spec.recipe}"


@cache
def _papers(recipe):
    """The settings of a recipe's paper and the case that each is for, the more special ones last: its words, and what
    they imply: the loss, the method, and the part whose setting it is."""
    lines = []
    for line in PAPERS:
        if line["recipe"] == recipe:
            implied = _whole(recipe, json.dumps(line["words"]))
            names = ("loss.name", "method.name", f"{line['key'].partition('.')[0]}.name")
            case = {key: implied[key] for key in names if key in implied and key != line["key"]}
            lines.append((line, case | canonical(line["words"]), len(line["words"])))
    return [line[:2] for line in sorted(lines, key=lambda line: line[2])]


@cache
def _whole(recipe, words):
    return flatten(complete(fill(make_spec({"recipe": recipe, **json.loads(words)}))).whole())


def _same(value, expected):
    if isinstance(expected, float) and isinstance(value, int | float):
        return value == pytest.approx(expected, rel=1e-3)  # angles and reciprocals are rounded
    if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
        return len(value) == len(expected) and all(map(_same, value, expected))
    return value == expected or {value, expected} <= {None, "none"} if not isinstance(value, list | tuple) else False


def _meaning(table, part):
    names = MEANINGS.get(table.id) or MEANINGS.get(table.source) or (table.source,)
    merged = {}
    for name in reversed(names):
        merged |= ROWS[name].get(part, {})
    return {name: merged.get(name) or next((v for k, v in merged.items() if k.lower() == name.lower()), {})
            for name in {*merged, *table.methods}} if part == "rows" else merged  # fmt: skip


def _places(table):
    """(network, size) of a table, None where it has none or rows of its own for it."""
    networks = [NETWORKS[name] for name in re.findall("|".join(NETWORKS), table.backbone)]
    separated = re.search(r"(\d+) separated", table.dim)
    dims = [int(separated[1])] if separated else [int(d) for d in re.findall(r"\d+", table.dim)]
    if any("dim" in row.where for row in table.rows):
        dims = []
    return [(network, dim) for network in networks or [None] for dim in dims or [None]]


def _place(study, cell):
    """What tells rows of a study apart: the data, and the labels on its axes."""
    return cell.spec.data.name, cell.labels
