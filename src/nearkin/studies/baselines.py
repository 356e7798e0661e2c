"""Baselines: what the untrained network gives, in the rows beside the trained ones."""

import json
from typing import Any

from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.models.fitted import FittedHead
from nearkin.registry import HEADS
from nearkin.runs.defaults import resolve
from nearkin.studies.cells import Cell

# What is laid over a trained run's words. `dim` does not count where the pooled feature itself is taken.
BASELINES: dict[str, dict[str, Any]] = {
    "pooled": {"train.epochs": 0, "model.head": "none", "model.dim": None},
    "random_head": {"train.epochs": 0},
    "pca_whitening": {"train.epochs": 0, "model.head": "pca_whitening"},
    "lda": {"train.epochs": 0, "model.head": "lda"},
    "nca": {"train.epochs": 0, "model.head": "nca"},
    **{
        head: {"train.epochs": 0, "model.head": head}
        for head in ("lmnn", "mcml", "pola", "schultz_joachims", "kwok_tsang", "itml", "mmc")
    },
}
WITHOUT_PARTS = {"miner": "none", "regulariser": "none", "method": "none"}  # what an untrained network does not have
CUSTOMARY = ("pooled", "random_head")
ANY = "any"


def baseline_of(head: str, init: str = "kaiming") -> str:
    """The name of an untrained network with this head and `model.init`: a head that is fitted gives its own, one that
    begins from the training images what it begins at."""
    if head == "none":
        return "pooled"
    return (init if init == "pca" else head) if is_fitted(head, init) else "random_head"


def is_fitted(head: str, init: str = "kaiming") -> bool:
    """Is this head, without training, computed from the training images, so that it depends on the fold?"""
    if init == "pca":
        return True
    return head in HEADS and isinstance(HEADS[head], type) and issubclass(HEADS[head], FittedHead)


def parse_baselines(value: Any, where: str) -> tuple[str, ...]:
    """The names that `baselines:` in a study's file stands for."""
    if value in ("untrained", "customary"):
        return CUSTOMARY
    if value in ("none", None):
        return ()
    if value == "all":
        return tuple(BASELINES)
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise NearkinError(f"baselines={value!r} in {where}: must be customary, all, none, or a list of names")
    for name in names:
        if not isinstance(name, str) or name not in BASELINES:
            raise NearkinError(f"baselines={name!r} in {where}: {choices(str(name), [*BASELINES, 'all', 'none'])}")
    return tuple(names)


def baseline_cells(cells: list[Cell], axes: tuple[str, ...], names: tuple[str, ...]) -> list[Cell]:
    """The untrained networks that trained cells are read beside, one for each network, data and seed; those that the
    study has already are left out. On the first axis that does not change the network their label is the baseline's
    name, on others `any`. Of several folds the first serves: their test images are the same,
    and maps that are fitted to training classes are fitted to those of the first."""

    def name(spec: RunSpec) -> str:
        return json.dumps(resolve(spec).changes(), sort_keys=True)

    there = {name(cell.spec) for cell in cells if cell.spec.train.epochs == 0}
    first = min((cell.fold for cell in cells if cell.fold is not None), default=None)
    trained = [cell for cell in cells if cell.spec.train.epochs != 0 and cell.fold == first]
    untrained = []
    for baseline in names:
        groups: dict[str, list[tuple[Cell, RunSpec]]] = {}
        for cell in trained:
            spec = make_spec(cell.spec, WITHOUT_PARTS, BASELINES[baseline])
            model = resolve(cell.spec).model  # given weights begin at pca where nothing else is set
            if model.init == "pca":  # no random head, and nothing that other heads read
                width = {"model.dim": model.dim} if baseline == "random_head" else {}
                spec = make_spec(spec, {"model.init": "kaiming"}, width)
            groups.setdefault(name(spec), []).append((cell, spec))
        for key, group in groups.items():
            if key in there:
                continue
            there.add(key)
            label, labels = f"{baseline} (untrained)", []
            for i in range(len(axes)):
                side, whole = ({cell.labels[i] for cell in cells} for cells in ([c for c, _ in group], trained))
                labels.append(ANY if side == whole or len(side) > 1 else side.pop())
            if ANY in labels:
                labels[labels.index(ANY)] = label
            elif labels:  # every axis changes the network
                labels[0] = f"{labels[0]}, {label}"
            cell, spec = group[0]
            untrained.append(Cell(tuple(labels), cell.seed, spec, cell.fold, baseline))
    return untrained
