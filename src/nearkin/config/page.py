"""docs/settings.md: every setting and every part, as one page.

python -m nearkin.config.page > docs/settings.md        (make settings)
"""

import sys

from nearkin.config.catalogue import Entry, shown
from nearkin.config.describe import CLASSES, classes, group, settings
from nearkin.config.parts import PARTS
from nearkin.config.search import SEARCHED, declared
from nearkin.config.spec import ALIASES, UNHASHED, RunSpec
from nearkin.spaces import Space

OPENING = """\
# Settings

All that a run can be told: first the settings that every run has, then those of each loss, miner and other part. This
page is made from the code by `make settings`; `nearkin explain KEY` shows the same for one key, as in

    nearkin explain train.patience              one setting
    nearkin explain loss.alpha                  of every loss that has an alpha
    nearkin explain multi_similarity            formula, source and settings of one class

## How settings are written

    nearkin train loss=margin loss.beta=1.1 dim=64 train.schedule=cosine        words
    nearkin train run.yaml seed=1                                               a file, and words over it
    nearkin.train({"loss": "margin", "loss.beta": 1.1, "dim": 64}, seed=1)      Python

- A key is `group.name`; the commonest have a short form ([below](#short-forms)). In YAML a group may be a mapping:
  `loss: {name: margin, beta: 1.1}`.
- Values are read as YAML: `64`, `1e-3`, `true`, `null`, a word.
- `loss=NAME` chooses a class, `loss.KEY` sets one of its hyper-parameters. A word that names another class begins with
  the defaults of that class: hyper-parameters that a file gave the old one are dropped.
- `null` leaves a setting open where its default depends on the network; the column "default" says what it becomes. The
  spec that is stored with a run has nothing open.
- A run is named by a hash of all settings that something reads, the data and the split: the momentum of adamw is not
  part of it, nor is the loss of an untrained network. The hash does not cover the number of threads, nor
  UNHASHED.
"""
ENVIRONMENT = """\
## What is not a setting

**Threads.** `OMP_NUM_THREADS=4 nearkin train ...` lets PyTorch compute with four threads. Without it PyTorch takes as
many as the machine has cores, which is right for one training at a time. Two trainings side by side that both take all
cores get in each other's way: give each its share. The number of threads is not part of a run's name, but the last bits
of a result depend on it; `environment.json` of a run has it, and `nearkin doctor` says how many there are now. The runs
of a study have one thread each, whatever the variable says; `--workers N` trains N of them at a time. Decoding images
takes all cores.

**The cache.** Decoded images and the features before a cut lie in `$NEARKIN_CACHE`, else where the system keeps caches:
on Linux in `$XDG_CACHE_HOME/nearkin`, else `~/.cache/nearkin`; on macOS in `~/Library/Caches/nearkin`.
`NEARKIN_CACHE_LIMIT=50` keeps at most 50 GB, those used last. `nearkin cache list` shows them, `nearkin cache clear`
deletes them, but for what a process is making; what is needed is made again.

**Runs** are stored in the folder `runs`; `--runs DIR` names another.
"""
PARTS_OPENING = """\
## Settings of single parts

`nearkin explain NAME` shows the whole docstring; [definitions.md](definitions.md) has all formulas, sources and where
others differ. Parameters that nearkin hands over itself, as the number of classes, are not shown.
"""
BACKBONES_OPENING = """\
The defaults of data.size, data.resize and data.crop, in pixels, and the stages that model.cut may name. `timm/NAME` has
the sizes that timm gives the model, and one stage, `trunk`."""
SPACES_OPENING = """\
What tuning may try of each loss, miner, regulariser and method, unless a file gives other spaces. "ours" are ranges
around the defaults that nobody has published. A key that is read in one form of its class only is searched in that
form only."""


def markdown() -> str:
    """docs/settings.md."""
    alone = ("recipe", "purpose")  # single settings, not groups of them
    groups = [group(name) for name in RunSpec.model_fields if name not in alone]
    opening = OPENING.replace("UNHASHED", ", ".join(_code(key) for key in sorted(UNHASHED)))
    pages = [opening, _heading("Parts", "Each is a class, chosen by its name; its own settings are further below.")]
    pages.append(_settings_table([settings()[f"{part}.name"] for part in PARTS]))
    for entry in groups:
        if entry.settings:
            pages += [_heading(f"{entry.key}.*", entry.about), _settings_table(list(entry.settings))]
    pages += [_heading("recipe and purpose", ""), _settings_table([settings()[name] for name in alone])]
    aliases = _table(["word", "stands for"], [[_code(word), _code(key)] for word, key in ALIASES.items()])
    pages += [_heading("Short forms", ""), aliases, ENVIRONMENT, PARTS_OPENING]
    for part in PARTS:
        pages += [_heading(CLASSES[part].title, "", "###"), _class_table(part)]
    heads = _table(["head", "meaning"], [[f"**{entry.key}**", entry.about] for entry in classes("head")])
    pages += [_heading("Backbones", BACKBONES_OPENING, "###"), _backbone_table(), _heading("Heads", "", "###"), heads]
    pages += [_heading("Search spaces", SPACES_OPENING), _space_table()]
    return "\n".join(pages)


def _settings_table(entries: list[Entry]) -> str:
    rows = []
    for entry in entries:
        meaning = f"{entry.about} *Source: {entry.source}*" if entry.source else entry.about
        rows.append([_code(entry.key), _default(entry), entry.allowed, meaning])
    return _table(["key", "default", "allowed", "meaning"], rows)


def _class_table(part: str) -> str:
    """One row per class, one below it per hyper-parameter."""
    rows = []
    for entry in classes(part):
        rows.append([f"**{entry.key}**", "", "", entry.about])
        rows += [["", _code(parameter.key), _default(parameter), parameter.about] for parameter in entry.settings]
    return _table([part, "key", "default", "meaning"], rows)


def _backbone_table() -> str:
    rows = []
    for entry in classes("backbone"):
        record = CLASSES["backbone"][entry.key].record
        rows.append([f"**{entry.key}**", f"{record.size}, {record.resize}, {record.crop}", ", ".join(entry.choices)])
    return _table(["backbone", "size, resize, crop", "stages"], rows)


def _space_table() -> str:
    """One row per space; a class is named in its first."""
    rows = []
    for part in SEARCHED:
        for entry in classes(part):
            first = f"{part} **{entry.key}**"
            for key, space in declared(CLASSES[part][entry.key]).items():
                full = key if "." in key else f"{part}.{key}"
                rows.append([first, _code(full), f"{space}{_condition(space)}", space.source])
                first = ""
    return _table(["part", "key", "space", "source"], rows)


def _condition(space: Space) -> str:
    """', with form=distance or cosine'."""
    settings = [f"{name}={' or '.join(shown(v) for v in values)}" for name, values in space.when.items()]
    return f", with {' and '.join(settings)}" if settings else ""


def _default(entry: Entry) -> str:
    return entry.filled or _code(shown(entry.default))


def _code(text: str) -> str:
    return f"`{text}`"


def _heading(title: str, about: str, level: str = "##") -> str:
    return f"{level} {title}\n" + (f"\n{about}\n" if about else "")


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.buffer.write(markdown().encode())  # UTF-8, whatever the terminal is set to
