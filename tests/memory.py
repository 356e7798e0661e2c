"""Peak memory of a call, from the allocator's own events: exact, whatever else the machine does."""

from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile


def peak_bytes(call: Callable[[], object]) -> int:
    """The most bytes that were allocated at one time during the call, beyond those held before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        kept = call()
    live = peak = 0
    for event in record.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    del kept
    return peak


def test_peak_bytes_counts_what_lives_at_one_time() -> None:
    x = torch.zeros(1000, 1000)
    assert 8_000_000 <= peak_bytes(lambda: (x + 1) + 1) < 8_001_000
    assert peak_bytes(lambda: x.add_(1)) < 1000
