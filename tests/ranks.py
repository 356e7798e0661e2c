"""What processes of a distributed test do: each function runs on every rank, and each rank gives an answer."""

import os
import signal
import socket
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from losses.loss_cases import CASES, case_id, make, miners_for
from torch import distributed, nn

from nearkin.engine.distributed import Ranks, SyncedBatchNorm, acting_as, synchronise
from nearkin.engine.embed import embed
from nearkin.engine.gradient import batch_loss
from nearkin.engine.objective import Objective, build_objective
from nearkin.methods import DRML
from nearkin.models.drml import DRMLHead
from nearkin.pairs import Embedded
from nearkin.studies._local import warm_up

B, INPUT, DIM, CLASSES = 13, 9, 8, 4  # 13: no two or three slices are equal


def spawn(job: str, world: int, folder: Path, *arguments: Any) -> dict[str, Any]:
    """Run a function of this module on `world` processes: their answers, or the text of an error, and exit codes. They
    are forked from the process that a study's workers are forked from, so that nobody imports torch again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = warm_up()
    folder.mkdir(parents=True, exist_ok=True)
    processes = [context.Process(target=_work, args=(job, r, world, port, folder, arguments)) for r in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    files = [folder / f"{job}{r}.pt" for r in range(world)]
    answers = [torch.load(file) if file.exists() else None for file in files]
    return {"answers": answers, "codes": [process.exitcode for process in processes]}


def _work(job: str, rank: int, world: int, port: int, folder: Path, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    try:
        answer = globals()[job](rank, world, *arguments)
    except (Exception, KeyboardInterrupt):
        answer = {"error": traceback.format_exc()}
    if distributed.is_initialized():
        distributed.destroy_process_group()
    torch.save(answer, folder / f"{job}{rank}.pt")


def join(rank: int, world: int) -> Ranks:
    distributed.init_process_group("gloo", rank=rank, world_size=world)
    return Ranks(rank, world)


# -- gradients ---------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A little network: with or without BatchNorm, with a linear head or DRML's."""

    def __init__(self, *, norm: bool, drml: bool):
        super().__init__()
        self.body = nn.Linear(INPUT, 8)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.head = DRMLHead(8, DIM, parts=2) if drml else nn.Linear(8, DIM)

    def forward(self, x, mix=None):
        out = self.head(torch.tanh(self.norm(self.body(x))))
        return out if isinstance(out, Embedded) else Embedded(out)


def gradients(net, objective, ranks, x, labels, chunk=None, memory=None):
    """Loss, and gradients of network and objective, as the training loop makes them."""
    with acting_as(ranks):
        loss, _, finish = batch_loss(
            net,
            objective,
            x[ranks.mine(len(x))],
            labels,
            chunk=chunk,
            mix=None,
            memory=memory,
            generator=torch.Generator().manual_seed(3),
            reseed=lambda c: torch.manual_seed(100 + c),
        )
    parameters = [*net.parameters(), *objective.parameters()]
    for parameter in parameters:
        parameter.grad = None
    loss.backward()
    finish()
    ranks.reduce(net.parameters(), objective.parameters())
    return [loss.detach(), *(p.grad.clone() for p in parameters if p.grad is not None)]


def cases(every: bool):
    """Every registered loss, and DRML around three of them; with `every`, in every variant and with every miner that
    fits it."""
    for name, settings in CASES:
        if settings and not every:
            continue
        loss = make(name, settings, classes=CLASSES, dim=DIM).double()
        yield f"{name} {case_id(settings)}", Objective(loss), False
        if every and not settings:
            for miner_name, miner in miners_for(loss):
                yield f"{name} + {miner_name}", Objective(loss, miner), False
    for name in ("triplet", "margin", "proxy_anchor"):
        torch.manual_seed(2)
        objectives = [build_objective(loss=(name, {}), num_classes=CLASSES, dim=d) for d in (DIM, DIM // 2, DIM // 2)]
        yield f"drml + {name}", DRML(objectives[0], objectives[1:], 4, DIM // 2).double(), True


def every_gradient(rank: int, world: int) -> dict[str, float]:
    """The largest difference to one process on the whole batch, for every case, with BatchNorm and without, in one pass
    and in two."""
    ranks, worst = join(rank, world), {}
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, INPUT, generator=generator, dtype=torch.float64)
    labels = torch.arange(B) % CLASSES
    for name, objective, drml in cases(every=world == 2):
        for norm, chunk in ((False, None), (True, None), (False, 2)):
            torch.manual_seed(1)
            net = Net(norm=norm, drml=drml).double()
            torch.manual_seed(1)
            slice_net = Net(norm=norm, drml=drml).double()
            with acting_as(ranks):
                synchronise(slice_net)
            assert isinstance(slice_net.norm, SyncedBatchNorm if norm else nn.Identity)
            whole = gradients(net, objective, Ranks(), x, labels)
            sliced = gradients(slice_net, objective, ranks, x, labels, chunk)
            assert len(whole) == len(sliced), name
            key = f"{name}{', BatchNorm' if norm else ''}{', two passes' if chunk else ''}"
            scale = max(float(w.abs().max()) for w in whole) or 1.0
            worst[key] = max(float((w - s).abs().max()) for w, s in zip(whole, sliced, strict=True)) / max(1.0, scale)
            if norm:
                for buffer, own in zip(net.norm.buffers(), slice_net.norm.buffers(), strict=True):
                    worst[key] = max(worst[key], float((buffer - own).abs().max()))
    return worst


# -- embedding and training --------------------------------------------------------------------------------


class Rows:
    def __init__(self, x):
        self.x = x

    def test(self, indices):
        return self.x[indices]


class Plain(nn.Module):
    cut, dim = "none", DIM

    def __init__(self):
        super().__init__()
        self.net = Net(norm=True, drml=False)

    def forward(self, x):
        return self.net(x)


def sharded(rank: int, world: int, counts: list[int]) -> dict[int, bool]:
    """Is a sharded embedding that of one process, to the bit?"""
    ranks, found = join(rank, world), {}
    torch.manual_seed(1)
    model, device = Plain(), torch.device("cpu")
    source = Rows(torch.randn(max(counts), INPUT, generator=torch.Generator().manual_seed(0)))
    for count in counts:
        rows = torch.arange(count).numpy()
        with acting_as(ranks):
            shared = embed(model, source, rows, device)
        found[count] = torch.equal(shared, embed(model, source, rows, device))
    return found


def half_norm(rank: int, world: int) -> dict[str, float]:
    """Synchronised BatchNorm of bfloat16 maps against torch's own on the whole batch in float32; and the cumulative
    average that momentum=None means."""
    ranks = join(rank, world)
    x = torch.randn(B, 4, 33, 33, generator=torch.Generator().manual_seed(0)).bfloat16() * 3 + 2
    holder, whole = nn.Sequential(nn.BatchNorm2d(4, momentum=None)), nn.BatchNorm2d(4, momentum=None)
    with acting_as(ranks):
        synchronise(holder)
    for _ in range(3):
        found, expected = holder(x[ranks.mine(B)]), whole(x.float())
    assert found.dtype == torch.bfloat16
    return {
        "values": float((found.float() - expected[ranks.mine(B)]).abs().max()),
        "mean": float((holder[0].running_mean - whole.running_mean).abs().max()),
        "var": float((holder[0].running_var - whole.running_var).abs().max()),
    }


def at_step(number: int, act: Callable[[], None]) -> None:
    """Have this process do something at the beginning of a training step, which are counted from 0."""
    import nearkin.engine.loop

    steps, batch_loss = iter(range(10**6)), nearkin.engine.loop.batch_loss

    def acting(*args, **kwargs):
        if next(steps) == number:
            act()
        return batch_loss(*args, **kwargs)

    nearkin.engine.loop.batch_loss = acting


def trained(rank: int, world: int, words: dict[str, Any], runs: str, dies_at: int | None) -> dict[str, Any]:
    """A run; at step `dies_at` the last rank ends without a word."""
    import nearkin
    import nearkin.engine.loop

    nearkin.engine.loop.CHECKPOINT_SECONDS = 0
    if dies_at is not None and rank == world - 1:
        at_step(dies_at, lambda: os._exit(9))
    run = nearkin.train(words, runs=runs)
    return {"hash": run.hash, "test": run.result["test"]}


def struck(rank: int, world: int, words: dict[str, Any], runs: str) -> None:
    """A run whose processes all get Ctrl-C in their second step."""
    import nearkin

    signal.signal(signal.SIGINT, signal.default_int_handler)
    at_step(1, lambda: os.kill(os.getpid(), signal.SIGINT))
    nearkin.train(words, runs=runs)
