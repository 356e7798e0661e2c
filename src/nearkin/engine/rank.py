"""Which process of a job this is, by what torchrun sets in the environment: asked also before torch is imported."""

import os


def first() -> bool:
    """Is this the process that writes and prints?"""
    return int(os.environ.get("RANK", "0")) == 0


def prefix() -> str:
    """Who is speaking, when there are several."""
    return f"rank {os.environ.get('RANK', '?')}: " if int(os.environ.get("WORLD_SIZE", "1")) > 1 else ""
