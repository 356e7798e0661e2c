"""Batches on their way to the network, and the random numbers of every step.

The random numbers of step t come from generators seeded by (seed, t), one stream for each use: 0 augmentation, 1 the
network (dropout), 2 miner and loss, 3 the first weights, 4 the images that a head begins from.
"""

import os
from collections import deque
from collections.abc import Callable
from collections.abc import Generator as Stream
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.engine.distributed import ranks
from nearkin.numerics import generator_device
from nearkin.samplers import BatchSampler

CPU = torch.device("cpu")
AHEAD = 2  # batches that are loaded before they are needed
MOST_LOADERS = 8  # at most, by default
SMALLEST = 8  # rows of a piece: sharing fewer costs more than it saves


class Source(Protocol):
    """Where inputs come from: pixels, or cached features behind a cut. Several threads may read at once."""

    def train(self, indices: np.ndarray, generator: Generator, *, only: slice = ...) -> Tensor:
        """Augmented inputs of these rows; `only` selects a slice of them."""

    def test(self, indices: np.ndarray) -> Tensor:
        """The inputs of these rows as they are evaluated."""


class Batch(NamedTuple):
    """One batch, ready for the network."""

    rows: np.ndarray  # positions in the training set
    x: Tensor  # input of the model: this process's slice
    sampler_state: dict[str, Any]  # of the sampler after this batch


def load_batches(
    sampler: BatchSampler,
    source: Source,
    rows: np.ndarray,
    seed: int,
    step: int,
    *,
    loaders: int = 0,
    device: torch.device = CPU,
) -> Stream[Batch, None, None]:
    """An endless stream of batches: the rows of all processes, the images of this one.

    With `loaders` threads, each batch is cut into pieces that the threads load, and the pieces of the next batches are
    queued behind them while the device computes: no thread waits for the others at the end of a batch, few batches lie
    in memory; for a sampler that plans from the latest embeddings, and so cannot plan ahead, the threads share its one
    batch. Every piece draws the random numbers of the whole batch, from a generator seeded by the step, and
    takes its slice: the bits do not depend on the threads. For CUDA the batches lie in pinned memory, so that copying
    them does not stop the program.

    The threads end when the stream is closed.

    Parameters:
        sampler: chooses the rows of each batch.
        source: where their inputs come from; with loaders it is read by several threads at once.
        rows: (N,) the rows of the source; the sampler's positions point into them.
        seed, step: the seed of the run, and the number of the first batch.
        loaders: threads; 0: the caller loads each batch when it asks for it.
        device: where the batches go next.
    """
    mine = cache(ranks().mine)
    ahead = AHEAD if loaders and not sampler.needs_bank else 0

    def load(indices: np.ndarray, step: int, only: slice) -> Tensor:
        return source.train(rows[indices], Generator().manual_seed(seed_of(seed, step, 0)), only=only)

    if loaders == 0:
        while True:
            indices, state = sampler.next(), sampler.state_dict()
            yield Batch(indices, load(indices, step, mine(len(indices))), state)
            step += 1
    waiting: deque[tuple[np.ndarray, dict[str, Any], Pieces]] = deque()
    pool = _pool(loaders, device)
    try:
        while True:
            while len(waiting) <= ahead:
                indices, state = sampler.next(), sampler.state_dict()
                pieces = Pieces(mine(len(indices)), loaders, pin=device.type == "cuda")
                pieces.fill(pool, partial(load, indices, step))
                waiting.append((indices, state, pieces))
                step += 1
            indices, state, pieces = waiting.popleft()
            yield Batch(indices, pieces.whole(), state)
    finally:
        pool.shutdown(cancel_futures=True)


class Pieces:
    """A slice of a batch that threads fill together, each with consecutive rows.

    Parameters:
        part: the slice.
        threads: into how many pieces it is cut; fewer where they would be smaller than SMALLEST rows.
        pin: whether the memory is pinned.
    """

    def __init__(self, part: slice, threads: int, *, pin: bool):
        self.first, self.count, self.pin = part.start, part.stop - part.start, pin
        pieces = max(1, min(threads, self.count // SMALLEST))
        ends = [self.first + self.count * i // pieces for i in range(pieces + 1)]
        self.slices = [slice(*ends[i : i + 2]) for i in range(pieces)]
        self.futures: list[Future[None]] = []
        self._whole: Tensor | None = None
        self._lock = Lock()

    def fill(self, pool: ThreadPoolExecutor, load: Callable[[slice], Tensor]) -> None:
        """Have `load` called with the slice of every piece."""
        self.futures = [pool.submit(self._put, load, piece) for piece in self.slices]

    def whole(self) -> Tensor:
        """All rows, as soon as they are loaded."""
        for future in self.futures:
            future.result()
        assert self._whole is not None
        return self._whole

    def _put(self, load: Callable[[slice], Tensor], piece: slice) -> None:
        x = load(piece)
        with self._lock:  # the first piece knows shape and type
            if self._whole is None:
                self._whole = torch.empty((self.count, *x.shape[1:]), dtype=x.dtype, pin_memory=self.pin)
        # by NumPy: PyTorch would start threads of its own for every loader
        np.copyto(self._whole.numpy()[piece.start - self.first : piece.stop - self.first], x.numpy())


def loaders_for(loaders: int | None, device: torch.device) -> int:
    """`train.loaders` as a number. On a CPU threads would only take the cores away from the network."""
    if loaders is not None:
        return loaders
    return 0 if device.type == "cpu" else max(1, min(MOST_LOADERS, (os.cpu_count() or 1) - 1))


def _pool(loaders: int, device: torch.device) -> ThreadPoolExecutor:
    if device.type != "cuda":
        return ThreadPoolExecutor(loaders, "loader")
    index = torch.cuda.current_device() if device.index is None else device.index  # a new thread would be on GPU 0
    return ThreadPoolExecutor(loaders, "loader", initializer=torch.cuda.set_device, initargs=(index,))


def seed_of(seed: int, step: int, stream: int) -> int:
    """A seed for every step and use, by the finaliser of splitmix64: seeds of neighbouring steps are unrelated."""
    x = (seed << 40) + (step << 3) + stream
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = ((x + 0x9E3779B97F4A7C15) ^ (x >> 30)) * multiplier & 0xFFFFFFFFFFFFFFFF
        x ^= x >> 27
    return x >> 1


def seed_default(seed: int, device: torch.device) -> None:
    """Seed the random numbers of the network (dropout), on the CPU and on the device.

    torch.manual_seed costs a millisecond: it records a stack trace for every kind of device that is absent.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def generator_on(device: torch.device) -> Generator:
    """A generator for the random numbers of a device; it is seeded again for every step."""
    return Generator(generator_device(device))
