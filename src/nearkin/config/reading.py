"""Which settings of a spec are read: one meaning has one name.

Every setting says beside its field when something reads it (`read` of config/born.py), and what null stands for
(`null`). A setting that nothing reads has its default in a resolved spec, and is not part of a run's name: the
momentum of adamw, the loss of an untrained network. A value that null stands for is null.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nearkin.config.born import trait_of
from nearkin.registry import HEADS, hyperparameters

Tree = TypeVar("Tree", bound=BaseModel)


@dataclass(frozen=True)
class Reading:
    """The input of the fields' rules: a spec with all settings filled in, and what is known about its data. Before the
    data are read nothing is known about them, and settings that depend on them count as read.

    Parameters:
        spec: a RunSpec.
        validates: are there validation images?
        skips: was an image left out that cannot be read?
        augment: what the data set says about crops and flips (nearkin.data.Augment); None: not known yet.
        group: the parameter group whose settings are asked for, as in train.groups.head.
    """

    spec: Any
    validates: bool = True
    skips: bool = True
    augment: Any = None
    group: str = ""

    @property
    def trained(self) -> bool:
        """Is anything trained?"""
        return self.spec.train.epochs != 0

    @property
    def selects(self) -> bool:
        """Is the epoch chosen on validation images?"""
        return self.trained and self.validates

    @property
    def warms_up(self) -> bool:
        """Do warm-up epochs differ from others? Those that do not count are further epochs; in those that do, a
        backbone with given weights waits, unless it is frozen in any case."""
        model = self.spec.model
        waits = model.weights is not None and model.cut != "all"
        return self.trained and (waits or not self.spec.train.warmup_counts)

    @property
    def flips(self) -> bool:
        """Are training images mirrored, as far as is known?"""
        flip = self.spec.data.flip
        return bool(flip if flip is not None else self.augment is not None and self.augment.flip)

    @property
    def crops(self) -> bool:
        """Is a training image cut at random? Behind a cut, the first version of an image is the plain one and the
        second its mirror image, where it may be mirrored."""
        return self.trained and (self.spec.model.cut == "none" or self.spec.model.views > 1 + self.flips)

    def head_takes(self, key: str) -> bool:
        """Does the head have this hyper-parameter? A head that is not known yet may have it."""
        head = HEADS.known(self.spec.model.head or "")
        return head is None or key in hyperparameters(head)


def settled(reading: Reading) -> Any:
    """The same spec with settings that nothing reads at their defaults, and null for the values that null means.
    Settings that were filled in and that nothing reads are unset again."""
    while (plain := _plain(reading.spec, reading)) != reading.spec:  # one that goes may be the last reader of others
        reading = replace(reading, spec=plain)
    return plain


def _plain(tree: Tree, reading: Reading) -> Tree:
    new: dict[str, Any] = {}
    for name, field in type(tree).model_fields.items():
        value = getattr(tree, name)
        if not is_read(field, reading):
            new[name] = field.get_default(call_default_factory=True)
        elif isinstance(value, BaseModel):
            new[name] = _plain(value, reading)
        elif isinstance(value, Mapping):  # train.groups
            groups = {key: _plain(settings, replace(reading, group=key)) for key, settings in value.items()}
            new[name] = {key: settings for key, settings in groups.items() if settings != type(settings)()}
        elif value is not None and (null := trait_of(field, "null")) is not None and value == null(reading):
            new[name] = None
    new = {name: value for name, value in new.items() if value != getattr(tree, name)}
    return tree.model_copy(update=new) if new else tree


def unread(reading: Reading) -> set[str]:
    """The settings that nothing reads, as dotted keys; a part that nothing reads is named as a whole."""
    return set(_unread(reading.spec, reading, ""))


def _unread(tree: BaseModel, reading: Reading, prefix: str) -> list[str]:
    keys: list[str] = []
    for name, field in type(tree).model_fields.items():
        if not is_read(field, reading):
            keys.append(f"{prefix}{name}")
        elif isinstance(value := getattr(tree, name), BaseModel):
            keys += _unread(value, reading, f"{prefix}{name}.")
    return keys


def is_read(field: FieldInfo, reading: Reading) -> bool:
    """Does anything read this field?"""
    rule = trait_of(field, "read")
    return rule is None or bool(rule(reading))
