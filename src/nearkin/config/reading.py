"""What of a spec is read: one meaning has one name.

Every setting says beside its field when something reads it (`read` of config/born.py), and what null stands for
(`null`). A setting that nothing reads stands at its default in a resolved spec, and is not part of a run's name: the
momentum of adamw, the loss of an untrained network. A value that null stands for is null.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nearkin.config.born import told_of
from nearkin.registry import HEADS, hyperparameters

Tree = TypeVar("Tree", bound=BaseModel)


@dataclass(frozen=True)
class Reading:
    """What the rules of the fields are asked with: a spec whose open settings are filled, and what is known of its
    data. Before the data are read nothing is known of them, and what depends on them counts as read.

    Parameters:
        spec: a RunSpec.
        validates: are there validation images?
        skips: was an image left out that cannot be read?
        augment: what the data set says of crops and flips (nearkin.data.Augment); None: not known yet.
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
        said = self.spec.data.flip
        return bool(said if said is not None else self.augment is not None and self.augment.flip)

    @property
    def crops(self) -> bool:
        """Is a training image cut at random? Behind a cut, the first version of an image is the plain one and the
        second its mirror image, where it may be mirrored."""
        return self.trained and (self.spec.model.cut == "none" or self.spec.model.views > 1 + self.flips)

    def head_takes(self, key: str) -> bool:
        """Has the head this hyper-parameter? One that is not known yet may have it."""
        head = HEADS.known(self.spec.model.head or "")
        return head is None or key in hyperparameters(head)


def settled(reading: Reading) -> Any:
    """The same spec with settings at their defaults that nothing reads, and null for values that null stands for. Open
    settings that nothing reads are open again."""
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
            groups = {key: _plain(own, replace(reading, group=key)) for key, own in value.items()}
            new[name] = {key: own for key, own in groups.items() if own != type(own)()}
        elif value is not None and (null := told_of(field, "null")) is not None and value == null(reading):
            new[name] = None
    new = {name: value for name, value in new.items() if value != getattr(tree, name)}
    return tree.model_copy(update=new) if new else tree


def unread(reading: Reading) -> set[str]:
    """The settings that nothing reads, as dotted keys; of a part that nothing reads its name for all of it."""
    return set(_unread(reading.spec, reading, ""))


def _unread(tree: BaseModel, reading: Reading, prefix: str) -> list[str]:
    found: list[str] = []
    for name, field in type(tree).model_fields.items():
        if not is_read(field, reading):
            found.append(f"{prefix}{name}")
        elif isinstance(value := getattr(tree, name), BaseModel):
            found += _unread(value, reading, f"{prefix}{name}.")
    return found


def is_read(field: FieldInfo, reading: Reading) -> bool:
    """Does anything read this field?"""
    rule = told_of(field, "read")
    return rule is None or bool(rule(reading))
