"""Name -> class. One registry per kind of part; the room that defines its classes is imported at the first look-up.

A name with a dot is an import path. What it leads to is checked before it is called: each registry declares, where the
base class of its kind is defined, which classes or functions it takes (`Registry.takes`).
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nearkin.arguments import check_arguments
from nearkin.consent import check_consent, is_path
from nearkin.errors import NearkinError, choices


class Registry:
    """Name -> class, for one kind of part. Users add their own with the same decorator:

        from nearkin.registry import LOSSES

        @LOSSES.register("my_loss")
        class MyLoss(PairLoss): ...

    A name with a dot is an import path (`my_package.losses.MyLoss`), so that a spec can name a class that was never
    registered. Convention for every registered class: the keyword-only parameters of `__init__` are its
    hyper-parameters (a spec may set them); nearkin passes the positional ones (`num_classes`, ...).

    Parameters:
        kind: what messages call such a part: "loss", "miner", ...
        room: the package whose import registers nearkin's own; None: there are none. It is imported when something is
            looked up or registered, not before: most rooms bring torch.
        plural: the word for all of them, as `nearkin list` takes it; None: the kind with an s.
        title: the plural as a heading; None: the plural with a capital letter.
    """

    def __init__(self, kind: str, room: str | None = None, *, plural: str | None = None, title: str | None = None):
        self.kind = kind
        self.room = room
        self.plural = plural or f"{kind}s"
        self.title = title or self.plural.capitalize()
        self._registered: dict[str, type] = {}
        self._families: dict[str, Callable[[str], Any]] = {}
        self._imported: dict[str, Any] = {}
        self._bases: tuple[type, ...] = ()
        self._form: Callable[[Any], bool] = lambda part: False
        self._wanted = "nothing"

    @property
    def _classes(self) -> dict[str, type]:
        """All registered classes, nearkin's own among them."""
        if self.room is not None:
            importlib.import_module(self.room)  # while the room is being imported this gives what it has so far
        return self._registered

    def takes(self, *bases: type, words: str, form: Callable[[Any], bool] | None = None) -> None:
        """Declare what an import path may lead to.

        Parameters:
            bases: a class that derives from one of them.
            words: the same in words, as in "a nearkin.losses.Loss".
            form: for parts without a base class: is this object one? The object is not called to find out.
        """
        self._bases, self._wanted = bases, words
        if form is not None:
            self._form = form

    def register(self, name: str, *, version: int = 1, born: Mapping[str, Any] | None = None) -> Callable[[type], type]:
        """Class decorator. The constructor then refuses what its annotations do not allow (arguments.py).

        Parameters:
            name: as it is written in specs. A name that is taken cannot be taken again; the same class may register
                again (a notebook cell that is run twice).
            version: raise it when the same settings begin to give a different result: stored runs of the part are then
                no longer reused.
            born: for a hyper-parameter whose default has changed, its original default (config/born.py).
        """

        def add(cls: type) -> type:
            known = self._classes.get(name)
            if known is not None and (known.__qualname__, known.__module__) != (cls.__qualname__, cls.__module__):
                where = f"{known.__module__}.{known.__qualname__}"
                raise NearkinError(f"{self.kind} {name!r} is already registered by {where}; take another name")
            check_arguments(cls)
            cls.name = name  # type: ignore[attr-defined]
            cls.version = version  # type: ignore[attr-defined]
            cls.born = dict(born or {})  # type: ignore[attr-defined]
            self._classes[name] = cls
            return cls

        return add

    def family(self, prefix: str) -> Callable[[Callable[[str], Any]], Callable[[str], Any]]:
        """Function decorator: `prefix/NAME` stands for what the function returns for NAME."""

        def add(function: Callable[[str], Any]) -> Callable[[str], Any]:
            self._families[prefix] = function
            return function

        return add

    def __getitem__(self, name: str) -> Any:
        if name in self._classes:
            return self._classes[name]
        prefix, slash, member = name.partition("/")
        if slash and prefix in self._families:
            return self._families[prefix](member)
        if is_path(name):
            return self._import(name)
        raise NearkinError(f"unknown {self.kind} {name!r}: {choices(name, self._classes)}")

    def _import(self, path: str) -> Any:
        """What an import path leads to, if the user agreed to import it and it is a part of this kind."""
        check_consent(self.kind, path)
        here = str(Path.cwd())
        if here not in sys.path:  # a console script does not see the folder it is called in
            sys.path.append(here)
        module, _, attribute = path.rpartition(".")
        try:
            part = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise NearkinError(f"{self.kind} {path!r} cannot be imported: {error}") from error
        if not (isinstance(part, type) and issubclass(part, self._bases)) and not self._form(part):
            what = f"the class {part.__name__}" if isinstance(part, type) else f"a {type(part).__name__}"
            raise NearkinError(f"{self.kind} {path!r} is {what}; it must be {self._wanted}")
        self._imported[path] = part
        return part

    def known(self, name: str) -> Any:
        """What a name stands for, if that is known without importing anything; else None."""
        return self._classes.get(name, self._imported.get(name))

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self._classes)

    def __contains__(self, name: object) -> bool:
        return name in self._classes


def hyperparameters(cls: Any) -> Mapping[str, inspect.Parameter]:
    """The keyword-only parameters of a class: what a spec may set."""
    return _hyperparameters(cls)


@lru_cache(maxsize=1024)  # a study asks a thousand times
def _hyperparameters(cls: Any) -> Mapping[str, inspect.Parameter]:
    parameters = inspect.signature(cls, eval_str=True).parameters.values()
    return MappingProxyType({p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY})


LOSSES = Registry("loss", "nearkin.losses", plural="losses")
MINERS = Registry("miner", "nearkin.miners")
REGULARISERS = Registry("regulariser", "nearkin.regularisers")
METHODS = Registry("method", "nearkin.methods")
SAMPLERS = Registry("sampler", "nearkin.samplers")
BACKBONES = Registry("backbone", "nearkin.models")
DATASETS = Registry("data set", "nearkin.data", plural="datasets", title="Data sets")
PROTOCOLS = Registry("protocol", "nearkin.protocols")
METRICS = Registry("metric", "nearkin.evaluation.metrics")
HEADS = Registry("head", "nearkin.models")
ANALYSES = Registry("analysis", "nearkin.analysis", plural="analyses")
ALL_REGISTRIES = (
    LOSSES,
    MINERS,
    REGULARISERS,
    METHODS,
    SAMPLERS,
    BACKBONES,
    DATASETS,
    PROTOCOLS,
    METRICS,
    HEADS,
    ANALYSES,
)
PARTS = {  # part of a spec -> the classes that its name may stand for
    "data": DATASETS,
    "protocol": PROTOCOLS,
    "sampler": SAMPLERS,
    "loss": LOSSES,
    "miner": MINERS,
    "regulariser": REGULARISERS,
    "method": METHODS,
}
