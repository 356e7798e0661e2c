"""Half precision: its kinds, and a test in a child process, because it kills the process on some machines."""

import os
import subprocess
import sys
from typing import Literal

import torch

Half = Literal["bf16", "fp16"]

DTYPES: dict[str, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}
TRIAL = (  # a product, and a convolution with its gradient
    "import torch; a = torch.ones(256, 256, dtype={dtype}); assert float((a @ a)[0, 0]) == 256; "
    "c = torch.nn.Conv2d(8, 8, 3).to({dtype}); c(torch.ones(2, 8, 8, 8, dtype={dtype})).sum().backward()"
)
CURE = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}  # must be set before torch is imported


def half(amp: bool | str) -> Half | None:
    """The kind of half precision that `train.amp` asks for: true is bf16; None: full precision."""
    return "bf16" if amp is True else amp or None  # type: ignore[return-value]


def survives(code: str, **env: str) -> tuple[bool, str]:
    """Run code in a child process: did it succeed, and the last line of its errors."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode < 0:
        return False, f"killed by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else ""


def trap(kind: Half) -> str | None:
    """A CPU may advertise AMX to a process that is not allowed to use it: the first product in half precision kills it.
    None if all is well, else what to do."""
    code = TRIAL.format(dtype=DTYPES[kind])
    alive, last_line = survives(code)
    if alive:
        return None
    cure = " ".join(f"{k}={v}" for k, v in CURE.items())
    advice = f"start Python with {cure}" if survives(code, **CURE)[0] else "leave train.amp=false"
    return f"a {kind} product fails on this CPU ({last_line}); {advice}"
