"""What a run was made with: versions, commit, machine."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any


def environment() -> dict[str, Any]:
    """Versions, commit, CPU, cores and threads, as they are stored in environment.json."""
    import torch  # here: whoever reads runs needs none of it

    packages = ("nearkin", "torch", "numpy", "scikit-learn", "pillow", "matplotlib")
    return {
        "python": platform.python_version(),
        "versions": {p: _version(p) for p in packages},
        "commit": _commit(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of nearkin's checkout, with `+` if the tree was changed; None if nearkin is installed otherwise, even
    inside the repository of another project."""
    package = Path(__file__).parents[1]
    git = ["git", "--no-optional-locks", "-C", str(package)]  # a kill must not leave the user's index locked
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", "__init__.py"], capture_output=True, check=True)
        top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True)
        if Path(top.stdout.strip()) / "src" / "nearkin" != package.resolve():
            return None
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "."], capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
