"""Batches that threads load: the same bits as without them, and no thread is left."""

import signal
import threading
import time

import numpy as np
import pytest
import torch

import nearkin
from nearkin.data import Augment, Decoded, PixelSource
from nearkin.engine import batches
from nearkin.engine.batches import Pieces, load_batches, loaders_for, seed_of
from nearkin.engine.distributed import Ranks, acting_as
from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers import Random

ROWS = np.arange(5, 45)  # the training rows of 50 images


def alive():
    return [t for t in threading.enumerate() if t.name.startswith("loader")]


@pytest.fixture
def source():
    rng = np.random.default_rng(0)
    shapes = rng.integers(12, 30, (50, 2))
    pixels = rng.integers(0, 256, int(shapes.prod(1).sum()) * 3, dtype=np.uint8)
    return PixelSource(Decoded(pixels, shapes, np.arange(50)), size=10, crop=10, augment=Augment())


def stream(source, loaders, batch=20, step=0, sampler=None):
    sampler = sampler or Random(np.zeros(len(ROWS)), batch, 0)
    return load_batches(sampler, source, ROWS, 3, step, loaders=loaders)


def same(streams, count):
    for _ in range(count):
        one, *others = (next(each) for each in streams)
        for other in others:
            assert torch.equal(one.x, other.x)
            assert (one.rows == other.rows).all()
            assert one.sampler_state == other.sampler_state


# -- bits -------------------------------------------------------------------------------------------------------


def test_a_batch_is_what_the_source_gives_for_its_step(source):
    loaded, sampler = stream(source, 3, step=4), Random(np.zeros(len(ROWS)), 20, 0)
    for step in range(4, 8):
        generator = torch.Generator().manual_seed(seed_of(3, step, 0))
        assert torch.equal(next(loaded).x, source.train(ROWS[sampler.next()], generator))


@pytest.mark.parametrize("batch", [2, 17, 40])
def test_threads_change_no_bit(source, batch):
    same([stream(source, loaders, batch) for loaders in (0, 1, 3)], 7)


def test_pieces_that_are_done_in_another_order_stay_in_place(source):
    """The first pieces of a batch take the longest."""

    class Slow:
        def train(self, indices, generator, *, only):
            time.sleep(0.02 if only.start == 0 else 0)
            return source.train(indices, generator, only=only)

    same([stream(source, 0, 40), stream(Slow(), 3, 40)], 4)


@pytest.mark.parametrize("world", [2, 3])
def test_slices_of_ranks_together_are_the_batch(source, world):
    whole = [next(stream(source, 0, 38, step)).x for step in range(3)]
    for loaders in (0, 1, 3):
        for step in range(3):
            slices = []
            for rank in range(world):
                with acting_as(Ranks(rank, world)):
                    slices.append(next(stream(source, loaders, 38, step)).x)
            assert torch.equal(torch.cat(slices), whole[step])


def test_a_sampler_with_a_bank_is_never_asked_ahead(source):
    """Its batches follow the embeddings of the step before; the threads share the one batch."""
    labels = np.arange(len(ROWS)) % 8
    z = torch.randn(len(ROWS), 6, generator=torch.Generator().manual_seed(0))
    asked, streams = [[], []], []
    for loaders, calls in zip((0, 3), asked, strict=True):
        sampler = SAMPLERS["hard_neighbours"](labels, 16, 0, pairs=4)
        sampler.fill(z)
        original = sampler.next
        sampler.next = lambda calls=calls, original=original: (calls.append(1), original())[1]
        streams.append((sampler, stream(source, loaders, sampler=sampler)))
    for step in range(6):
        first, second = (next(each) for _, each in streams)
        assert torch.equal(first.x, second.x)
        assert [len(calls) for calls in asked] == [step + 1] * 2
        for sampler, _ in streams:
            sampler.update(first.rows, torch.randn(16, 6, generator=torch.Generator().manual_seed(step)))


def test_other_samplers_are_asked_ahead(source):
    sampler = Random(np.zeros(len(ROWS)), 20, 0)
    loaded = stream(source, 2, sampler=sampler)
    first = next(loaded)
    assert sampler.state_dict() != first.sampler_state  # which is that after the first batch
    again = Random(np.zeros(len(ROWS)), 20, 0)
    again.next()
    assert first.sampler_state == again.state_dict()


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"data.crop_scale": "0.3-1", "data.flip": True},
        {"sampler": "ddm", "sampler.per_class": 2, "sampler.big_batch": 32},
        {"cut": "all"},
    ],
    ids=str,
)
def test_a_run_with_loaders_is_the_run_without(tiny, tmp_path, words):
    """Also its name is: the number of threads is not in the hash."""
    runs = []
    for loaders in (0, 3):
        told = {**tiny, "epochs": 1, **words, "train.loaders": loaders}
        if words.get("cut"):
            told |= {"model.views": 3, "data.crop_scale": "0.5-1"}
        runs.append(nearkin.train(told, runs=tmp_path / str(loaders)))
    first, second = (run.load("model.pt") for run in runs)
    assert runs[0].hash == runs[1].hash
    for part in ("model", "objective"):
        assert first[part].keys() == second[part].keys()
        assert all(torch.equal(first[part][key], second[part][key]) for key in first[part])
    assert alive() == []


# -- threads ----------------------------------------------------------------------------------------------------


def test_loaders_are_used_and_end_with_the_stream(source):
    seen = set()

    class Watched:
        def train(self, indices, generator, *, only):
            seen.add(threading.current_thread().name)
            time.sleep(0.005)
            return source.train(indices, generator, only=only)

    loaded = stream(Watched(), 3, 40)
    next(loaded)
    assert len(alive()) == 3
    for _ in zip(range(30), loaded, strict=False):
        if len(seen) == 3:  # on a busy machine the first batches may all be one loader's
            break
    loaded.close()
    assert alive() == []
    assert len(seen) == 3
    assert threading.current_thread().name not in seen


def test_a_stream_that_is_closed_does_not_load_what_is_queued(source):
    done = []

    class Counted:
        def train(self, indices, generator, *, only):
            done.append(only)
            time.sleep(0.02)
            return source.train(indices, generator, only=only)

    loaded = stream(Counted(), 1, 20)
    next(loaded)
    loaded.close()
    assert len(done) <= 2  # of three batches that were begun


def test_an_error_in_a_thread_is_that_of_the_stream(source):
    class Damaged:
        def train(self, indices, generator, *, only):
            if only.start > 0:
                raise NearkinError("the file is cut short")
            return source.train(indices, generator, only=only)

    loaded = stream(Damaged(), 2, 40)
    with pytest.raises(NearkinError, match="cut short"):
        next(loaded)
    assert alive() == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError])
def test_training_that_is_stopped_leaves_no_thread(tiny, tmp_path, raised):
    def watch(entry):
        if entry.get("step") == 2:
            assert alive()
            raise raised

    with pytest.raises(raised) as stopped:  # the traceback still holds the loop's variables
        nearkin.train(tiny | {"train.loaders": 2}, runs=tmp_path, watch=watch)
    assert alive() == []
    del stopped


def test_ctrl_c_while_a_batch_is_waited_for_leaves_no_thread(source):
    class Slow:
        def train(self, indices, generator, *, only):
            time.sleep(0.2)
            return source.train(indices, generator, only=only)

    def struck(kind, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, struck)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            next(stream(Slow(), 2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert alive() == []


def test_a_run_struck_with_loaders_goes_on_with_others(tiny, tmp_path):
    def watch(entry):
        if entry.get("step") == 3:
            signal.raise_signal(signal.SIGINT)

    words = tiny | {"data.crop_scale": "0.5-1"}
    with pytest.raises(KeyboardInterrupt):
        nearkin.train(words | {"train.loaders": 2}, runs=tmp_path / "struck", watch=watch)
    assert alive() == []
    resumed = nearkin.train(words | {"train.loaders": 3}, runs=tmp_path / "struck").load("model.pt")
    straight = nearkin.train(words, runs=tmp_path / "straight").load("model.pt")
    assert all(torch.equal(value, straight["model"][key]) for key, value in resumed["model"].items())


# -- pieces, numbers, memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "threads", "pieces"), [((0, 128), 8, 8), ((0, 40), 8, 5), ((7, 10), 4, 1), ((5, 22), 2, 2), ((3, 3), 2, 1)]
)
def test_pieces_cover_the_slice_in_order(part, threads, pieces):
    slices = Pieces(slice(*part), threads, pin=False).slices
    assert len(slices) == pieces
    assert [row for piece in slices for row in range(piece.start, piece.stop)] == list(range(*part))


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (6, 5), (9, 8), (64, 8), (None, 1)])
def test_loaders_left_open(monkeypatch, cores, threads):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert loaders_for(None, torch.device("cpu")) == 0
    assert loaders_for(None, torch.device("cuda", 1)) == loaders_for(None, torch.device("mps")) == threads
    assert [loaders_for(asked, torch.device(kind)) for asked in (0, 30) for kind in ("cpu", "cuda")] == [0, 0, 30, 30]


@pytest.mark.parametrize(("device", "pinned"), [("cpu", False), ("mps", False), ("cuda:1", True)])
def test_memory_is_pinned_for_cuda_alone(monkeypatch, source, device, pinned):
    """There is no GPU here: what would be asked of it is noted."""
    asked, placed, empty = set(), set(), torch.empty

    def noting(*args, pin_memory=False, **kwargs):
        asked.add(pin_memory)
        return empty(*args, **kwargs)

    monkeypatch.setattr(batches.torch, "empty", noting)
    monkeypatch.setattr(batches.torch.cuda, "set_device", placed.add)
    sampler = Random(np.zeros(len(ROWS)), 20, 0)
    loaded = load_batches(sampler, source, ROWS, 3, 0, loaders=2, device=torch.device(device))
    same([stream(source, 0), loaded], 3)
    assert asked == {pinned}
    assert placed == ({1} if pinned else set())
