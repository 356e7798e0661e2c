"""Batches on their way to the network, and the random numbers of every step.

Chance of step t comes from generators seeded by (seed, t), one stream for each use: 0 augmentation, 1 the network
(dropout), 2 miner and loss, 3 the first weights.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.engine.distributed import ranks
from nearkin.samplers import BatchSampler


class Source(Protocol):
    """Where inputs come from: pixels, or cached features behind a cut."""

    def train(self, indices: np.ndarray, generator: Generator, *, only: slice = ...) -> Tensor:
        """Augmented inputs of these rows; `only` is the slice of them that is wanted."""

    def test(self, indices: np.ndarray) -> Tensor:
        """The inputs of these rows as they are evaluated."""


class Batch(NamedTuple):
    """One batch, ready for the network."""

    rows: np.ndarray                # positions in the training set
    x: Tensor                       # input of the model: this process's slice
    sampler_state: dict[str, Any]   # of the sampler after this batch


def load_batches(
    sampler: BatchSampler, source: Source, rows: np.ndarray, seed: int, step: int, *, ahead: int
) -> Iterator[Batch]:
    """An endless stream of batches: the rows of all processes, the images of this one. `ahead` > 0 loads in a thread
    while the device computes; on a CPU that thread would only take the cores away."""

    mine = cache(ranks().mine)
    generator = Generator()                                         # one batch is loaded at a time, also in the thread

    def load(indices: np.ndarray, step: int) -> Tensor:
        generator.manual_seed(seed_of(seed, step, 0))
        return source.train(rows[indices], generator, only=mine(len(indices)))

    def draw(step: int) -> tuple[np.ndarray, dict[str, Any], int]:
        return sampler.next(), sampler.state_dict(), step

    if ahead == 0:
        while True:
            indices, state, step_ = draw(step)
            yield Batch(indices, load(indices, step_), state)
            step += 1
    waiting: deque[tuple[np.ndarray, dict[str, Any], Future[Tensor]]] = deque()
    with ThreadPoolExecutor(1) as pool:
        while True:
            while len(waiting) <= ahead:
                indices, state, step_ = draw(step)
                waiting.append((indices, state, pool.submit(load, indices, step_)))
                step += 1
            indices, state, x = waiting.popleft()
            yield Batch(indices, x.result(), state)


def seed_of(seed: int, step: int, stream: int) -> int:
    """A seed for every step and use, by the finaliser of splitmix64: neighbours come out unrelated."""
    x = (seed << 40) + (step << 3) + stream
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = ((x + 0x9E3779B97F4A7C15) ^ (x >> 30)) * multiplier & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 27
    return x >> 1


def seed_default(seed: int, device: torch.device) -> None:
    """torch.manual_seed costs a millisecond: it notes a stack trace for every kind of device that is not there."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


def generator_on(device: torch.device) -> Generator:
    """A generator on the device where its numbers are wanted; it is seeded anew for every step."""
    return Generator(device.type if device.type == "cuda" else "cpu")
