"""Specs: everything that decides the result of a run, typed and frozen.

    read_spec("run.yaml")                                   a file
    make_spec("loss=margin loss.beta=1.2")                  words, as on the command line
    make_spec({"loss": "margin", "loss.beta": 1.2})         the same as a mapping
    make_spec({"loss": {"name": "margin", "beta": 1.2}})    a tree, as in YAML

A bare word is an alias (`loss` = `loss.name`, `dim` = `model.dim`, ...); anything else is dotted. Parts (loss,
miner, sampler, ...) take the keyword-only parameters of their class. An unknown key is an error that names the
near ones.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from nearkin import registry as registries
from nearkin.config import identity
from nearkin.config.born import born, original_defaults, original_defaults_of, unset
from nearkin.config.parse import ALIASES, canonical, check_values, flatten, read_text, read_yaml
from nearkin.config.parts import (
    PARTS,
    DataSpec,
    LossSpec,
    MethodSpec,
    MinerSpec,
    ProtocolSpec,
    RegulariserSpec,
    SamplerSpec,
    sentence,
)
from nearkin.config.reading import Reading, unread
from nearkin.config.recipes import Recipe
from nearkin.config.settings import Frozen, GroupSpec, MemorySpec, ModelSpec, TrainSpec
from nearkin.consent import consent, import_paths, is_path, note_stored
from nearkin.errors import NearkinError, choices

NAMED = ("data", "protocol", "loss")  # parts that have a name even where nobody gives one
# where it runs and what is kept, not what is run; what counts by its effect, the data hash
WHERE = {"recipe", "protocol.path", "data.root", "train.device", "train.loaders", "train.curve"}
UNHASHED = WHERE | {"data.exclude", "data.classes_from"}


class RunSpec(Frozen):
    """Everything that decides the result of a run, typed and frozen. Made by `make_spec` or `read_spec`.

    Example:
        spec = nearkin.make_spec({"loss": "margin", "loss.beta": 1.2, "dim": 64})
        run = nearkin.train(spec, seed=1)
    """

    data: DataSpec = Field(
        default_factory=lambda: DataSpec(),
        description="The data set: images and their classes, and at which size they are read.",
    )
    protocol: ProtocolSpec = Field(
        default_factory=lambda: ProtocolSpec(),
        description="Which classes or images train, which choose the epoch, and which are tested.",
    )
    sampler: SamplerSpec | None = unset(
        about="Which training images stand together in a batch.",
        filled="random for losses with class vectors (proxies), balanced for all others",
        source="Random batches for proxies as in the codes of ProxyAnchor, HIST and Psomas 2020.",
        read=lambda run: run.trained,
    )
    model: ModelSpec = Field(
        default_factory=lambda: ModelSpec(),
        description="The network: backbone, pooling, head, and what of it is frozen.",
    )
    loss: LossSpec = Field(
        default_factory=lambda: LossSpec(),
        description="What training minimises: it is small when images of one class lie near each other and others "
        "apart.",
        json_schema_extra={"read": lambda run: run.trained},  # type: ignore[dict-item]
    )
    miner: MinerSpec | None = born(
        None,
        about="Which pairs or triplets of a batch the loss sees; without one, most losses see all of them. It must "
        "give what the loss takes: `nearkin list miners` and `nearkin list losses` say what that is.",
        read=lambda run: run.trained,
    )
    regulariser: RegulariserSpec | None = born(
        None,
        about="What is added to the loss, or done to its triplets, against overfitting.",
        read=lambda run: run.trained,
    )
    method: MethodSpec | None = born(
        None,
        about="What is built around the loss: a whole method that trains more than one embedding with it.",
        read=lambda run: run.trained,
    )
    memory: MemorySpec = Field(
        default_factory=lambda: MemorySpec(),
        description="Cross-batch memory: embeddings of earlier batches as further references.",
    )
    train: TrainSpec = Field(
        default_factory=lambda: TrainSpec(),
        description="How it is trained: optimiser, epochs, batches, the choice of the epoch.",
    )
    recipe: str | None = born(
        None,
        about="The settings of a publication, under all others: what is set beside it wins, and `nearkin list recipes` "
        "names them. It is not part of a run's name: the same settings without it are the same run.",
    )
    purpose: Literal["final", "trial"] = born(
        "final",
        about="What a run is for. `final`: it is tested once its epoch is chosen. `trial`: it helps to choose settings "
        "by its validation result and is never tested, so that no choice of yours can follow the test images. The "
        "same settings under the other purpose are another run.",
    )

    def tree(self) -> dict[str, Any]:
        """Plain values, as YAML and JSON have them; parts that are not set stay out."""
        return self.model_dump(mode="json", exclude_none=True)

    def whole(self) -> dict[str, Any]:
        """The same with nulls: everything that a run is stored with."""
        return self.model_dump(mode="json")

    def classes(self) -> dict[str, Any]:
        """Part -> the class that its name stands for."""
        return {p: s.cls for p in PARTS if (s := getattr(self, p)) is not None}

    def unread(self) -> set[str]:
        """The keys of settings that nothing reads, as far as the spec alone tells."""
        idle = unread(Reading(self))  # parts, settings, and train.groups
        return {
            key
            for key in flatten(self.whole())
            if key in idle or key.partition(".")[0] in idle or ".".join(key.split(".")[:2]) in idle
        }

    def changes(self) -> dict[str, Any]:
        """What differs from the defaults that the fields were born with, as dotted words; not what nothing reads."""
        classes = self.classes()
        words = identity.with_plain_numbers(flatten(self.whole()), RunSpec, classes)
        return identity.changes(words, RunSpec, classes, UNHASHED | self.unread())

    def hash(self, data_hash: str, split_hash: str, *, former: bool = False, **versions: int) -> str:
        """The name of a run: what it is, on which data, with which meaning of each part.

        Parameters:
            data_hash: of the images, their classes and official division.
            split_hash: of the rows that train, validate and test.
            former: by the former rule, under which a run may be stored (runs/names.py): what nothing reads counts as
                well, 2 and 2.0 differ in a class from outside, and the versions of other packages do not count.
            versions: of what has no name in the spec: loop=2, transforms=1.
        """
        parts = self.parts(former=former)
        meaning: dict[str, Any] = {p: v for p, c in parts.items() if (v := getattr(c, "version", 1)) != 1}
        meaning |= {what: version for what, version in versions.items() if version != 1}
        meaning |= {f"{p} source": s for p, c in parts.items() if (s := identity.source_of(c)) is not None}
        if former:
            changes = identity.changes(flatten(self.whole()), RunSpec, self.classes(), UNHASHED)
        else:
            changes = self.changes()
            meaning |= {f"{p} package": s for p, c in parts.items() if (s := identity.package_of(c)) is not None}
        if self.model.weights is not None and (content := identity.content_of(self.model.weights)) is not None:
            changes["model.weights"] = content  # what the file holds, not its name
        content = json.dumps([changes, meaning, data_hash, split_hash], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def parts(self, *, former: bool = False) -> dict[str, Any]:
        """Part -> class or function, of all that the spec names and something reads: data, ..., backbone, head and the
        metric that selects. By the former rule also what nothing reads, but no metric at an import path."""
        idle = set() if former else self.unread()
        parts = {part: cls for part, cls in self.classes().items() if f"{part}.name" not in idle}
        parts["backbone"] = registries.BACKBONES[self.model.backbone]
        if self.model.head is not None:
            parts["head"] = registries.HEADS[self.model.head]
        select = self.train.select.partition("@")[0]
        if "train.select" not in idle and (select in registries.METRICS or (is_path(select) and not former)):
            parts["select"] = registries.METRICS[select]
        return parts

    def differences(self, stored: Mapping[str, Any]) -> list[str]:
        """What a stored tree says otherwise, in words; not where it runs, nor what nothing reads, nor the name of a
        file of weights, which counts by its content."""
        born = {key: value for key, (value, _) in original_defaults(RunSpec).items()}
        for part, cls in self.classes().items():
            born |= {f"{part}.{key}": value for key, value in original_defaults_of(cls).items()}
        left_out = UNHASHED | {"model.weights"} | self.unread()
        trees = [{k: v for k, v in flatten(tree).items() if k not in left_out} for tree in (stored, self.whole())]
        return identity.differences(trees[0], trees[1], born)


def make_spec(*sources: Mapping[str, Any] | RunSpec | str | None) -> RunSpec:
    """A spec from words, as a mapping or as one string, or from trees; later sources win. One that names another part
    (another loss, data set, ...) begins with that part's own defaults: what earlier ones set for the old one is gone.

    Words and trees are the user's: import paths in them are consented to. A `RunSpec` is not: it may be a stored run's.
    """
    read: list[Mapping[str, Any] | RunSpec | None] = []
    for source in sources:
        read += read_text(source) if isinstance(source, str) else [source]
    for source in read:
        if source is not None and not isinstance(source, RunSpec):
            consent(import_paths(canonical(source)))
    return _made(*read)


def _made(*sources: Mapping[str, Any] | RunSpec | None, stored: bool = False) -> RunSpec:
    """`make_spec`, for the user's sources or for the tree of a stored run."""
    words: dict[str, Any] = {}
    recipe = None
    for source in sources:
        if source is None:
            continue
        new = canonical(source.tree() if isinstance(source, RunSpec) else source)
        if not isinstance(source, RunSpec) and not stored:
            check_values(new)
        if not isinstance(source, RunSpec):  # a spec holds what its recipe says already
            recipe = new.get("recipe", recipe)
        for key in _replaced(words, new):
            del words[key]
        words.update(new)
    if recipe is not None:
        words = {**Recipe.named(recipe).words(words), **words}
    tree: dict[str, Any] = {}
    for key, value in words.items():
        *parents, leaf = key.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                above = ".".join(parents)
                raise NearkinError(f"{key}={value!r} beside {above}={node!r}: a value, or settings below it, not both")
        node[leaf] = value
    for part in ("sampler", "miner", "regulariser", "method"):  # miner=none takes a base spec's miner away
        if tree.get(part, {}).get("name") in (None, "none") and set(tree.get(part, {})) <= {"name"}:
            tree.pop(part, None)
    try:
        return RunSpec.model_validate(tree, context={"stored": stored})
    except ValidationError as error:
        raise NearkinError(_sentence(error)) from None


def stored_spec(tree: Mapping[str, Any], *, trust: bool = False) -> RunSpec:
    """A spec from the tree that a run is stored with. It holds what its recipe said then: nothing is filled in anew.

    Nothing that it names is imported: that happens where a part is needed, and if the user wants it (consent.py).

    Parameters:
        tree: the spec as plain values.
        trust: the tree is not a stranger's: its import paths are consented to, as with the task of a study's worker.
    """
    note = consent if trust else note_stored
    note(import_paths(tree))
    spec = _made({key: value for key, value in tree.items() if key != "recipe"}, stored=True)
    note(import_paths(spec.whole()))  # bytes have become text
    return spec.model_copy(update={"recipe": tree.get("recipe")})


def completed(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The tree of a stored run with the settings that are newer than the run, which was made with what they were born
    with: those that would be filled in otherwise today, and hyper-parameters whose defaults have changed."""
    tree = dict(tree)
    for key, (value, is_open) in original_defaults(RunSpec).items():
        room, _, field = key.rpartition(".")
        if is_open and value is not None and isinstance(tree.get(room), Mapping):
            tree[room] = {field: value, **tree[room]}
    for part, registry in registries.PARTS.items():
        stored = tree.get(part)
        if isinstance(stored, Mapping) and (name := stored.get("name")) in registry:
            tree[part] = {**getattr(registry[str(name)], "born", {}), **stored}
    return tree


def _replaced(words: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The words that belong to parts which `new` names otherwise."""
    gone = []
    for part in PARTS:
        name = new.get(f"{part}.name")
        before = words.get(f"{part}.name", original_defaults(RunSpec)[f"{part}.name"][0] if part in NAMED else None)
        if name is not None and before is not None and name != before:
            any_data = {f"data.{key}" for key in DataSpec.model_fields} - {"data.name", "data.root", "data.exclude"}
            gone += [key for key in words if key.startswith(f"{part}.") and key not in any_data]
    backbone = new.get("model.backbone")
    if backbone is not None and words.get("model.backbone", backbone) != backbone:
        gone += [key for key in ("model.weights", "model.cut") if key in words]  # the other network's
    return gone


def read_spec(path: Path) -> RunSpec:
    """The spec in a YAML file."""
    return make_spec(read_yaml(path))


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong, in one line; an unknown key with the near ones."""
    first = error.errors()[0]
    if first["type"] != "extra_forbidden":
        return sentence(error)
    model: Any = RunSpec
    for step in first["loc"][:-1]:
        field = getattr(model, "model_fields", {}).get(step)
        model = next((m for m in (field.annotation if field else None,) if hasattr(m, "model_fields")), GroupSpec)
    known = list(model.model_fields) + (sorted(ALIASES) if model is RunSpec else [])
    where = ".".join(str(x) for x in first["loc"])
    return f"unknown key {where!r}: {choices(str(first['loc'][-1]), known)}"
