"""Things that kill a process on some machines, tried in a child process that may die."""

import os
import subprocess
import sys

BF16 = "import torch; a = torch.ones(256, 256, dtype=torch.bfloat16); assert float((a @ a)[0, 0]) == 256"
BF16_CURE = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}      # must be set before torch is imported


def survives(code: str, **env: str) -> tuple[bool, str]:
    """Run code in a child: does it live, and what did it say last?"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode < 0:
        return False, f"killed by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else ""


def bf16_trap() -> str | None:
    """A CPU may advertise AMX to a process that is not allowed to use it: the first bf16 product kills it.
    None where all is well, else what to do."""
    if survives(BF16)[0]:
        return None
    cure = " ".join(f"{k}={v}" for k, v in BF16_CURE.items())
    advice = f"start Python with {cure}" if survives(BF16, **BF16_CURE)[0] else "leave train.amp=false"
    return f"a bf16 product kills the process on this CPU; {advice}"
