"""The source of a part from outside nearkin: its modules, and the modules that these import.

A module of an installed package or of Python's library does not count: it changes with its version, not by an edit. All
others do, wherever they are, and so do those that they import. Imports are read from the text: nothing runs.
"""

import ast
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

INSIDE = {"nearkin", "torch", "numpy", *sys.stdlib_module_names}
INSTALLED = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
PACKAGES = {"site-packages", "dist-packages"}


def text_of(part: Any) -> str:
    """The text that defines a class or function: that of its module; in a script or notebook, its source alone."""
    file = file_of(part.__module__)
    if part.__module__ != "__main__" and file is not None:
        return file.read_text(errors="replace")
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):  # notebooks: the class has no file, its methods do
        return "\n".join(_function(f) for _, f in sorted(vars(part).items()) if isinstance(f, FunctionType))


def _function(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = function.__code__
        return f"{function.__name__} {code.co_code.hex()} {code.co_consts} {code.co_names}"


def helpers_of(parts: Iterable[Any]) -> dict[str, str]:
    """Module -> text, sorted: all that the modules of these classes or functions import, directly or through others.
    The modules themselves are not in it."""
    parts = list(parts)
    modules = {part.__module__ for part in parts}
    waiting = [name for part in parts for name in _imported_by(part)]
    seen, texts = set(modules), dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if (file := file_of(name)) is None or is_installed(name, file):
            continue
        texts[name] = file.read_bytes().decode(errors="backslashreplace")
        waiting += imports(file, name)
    return dict(sorted(texts.items()))


def _imported_by(part: Any) -> Iterator[str]:
    """The modules that the module of a part imports; in a script or notebook, which imports much else, those that the
    part itself uses by name."""
    module = part.__module__
    file = file_of(module)
    if module != "__main__" and file is not None:
        yield from () if is_installed(module, file) else imports(file, module)
        return
    functions = [part] if isinstance(part, FunctionType) else vars(part).values()
    for function in functions:
        for name in _names(function.__code__) if isinstance(function, FunctionType) else ():
            value = function.__globals__.get(name)
            owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(owner, str):
                yield owner


def _names(code: CodeType) -> set[str]:
    """The names that a function looks up, those of functions inside it included."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def imports(file: Path, module: str) -> tuple[str, ...]:
    """The modules that the text of a file may import, by their full names; none if it is not Python text."""
    if file.suffix != ".py":
        return ()
    stat = file.stat()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return _imports(file, package, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _imports(file: Path, package: str, size: int, time: int) -> tuple[str, ...]:
    """Read once for each content, which size and time identify."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    modules = dict[str, None]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= dict.fromkeys(parent for alias in node.names for parent in _with_parents(alias.name))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            modules |= dict.fromkeys(_with_parents(base))
            modules |= dict.fromkeys(f"{base}.{alias.name}" for alias in node.names)  # a module, or a name in one
    return tuple(name for name in modules if name.partition(".")[0] not in INSIDE)


def _with_parents(name: str) -> list[str]:
    steps = name.split(".")
    return [".".join(steps[: i + 1]) for i in range(len(steps))] if name else []


def file_of(module: str) -> Path | None:
    """The file of a module, whether it is imported yet or not; None: there is no such module, or it has no file."""
    if module in sys.modules:
        place = getattr(sys.modules[module], "__file__", None)
        return Path(place) if place and Path(place).is_file() else None
    parent, _, leaf = module.rpartition(".")
    if parent:  # find_spec would import the parent
        package = file_of(parent)
        folder = package.parent if package is not None and package.name == "__init__.py" else None
        places = [] if folder is None else [folder / f"{leaf}.py", folder / leaf / "__init__.py"]
        return next((place for place in places if place.is_file()), None)
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def is_installed(module: str, file: Path) -> bool:
    """Is it part of Python, of nearkin, or of an installed package?"""
    if module.partition(".")[0] in INSIDE:
        return True
    parents = set(file.resolve().parents) | set(file.absolute().parents)
    return bool(parents & INSTALLED) or any(parent.name in PACKAGES for parent in parents)
