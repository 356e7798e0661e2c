"""`nearkin train` and `nearkin embed`."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import nearkin
from nearkin.cli.flags import in_flags
from nearkin.cli.options import Json, Runs, Trust
from nearkin.cli.screen import err, say, say_json
from nearkin.config.parse import read_words
from nearkin.config.spec import make_spec
from nearkin.engine import rank
from nearkin.errors import NearkinError
from nearkin.runs.embed_folder import embed_folder
from nearkin.runs.result import Result, stored_before
from nearkin.runs.store import Run, Store
from nearkin.runs.training_bar import training_bar
from nearkin.studies.baselines import BASELINES, WITHOUT_PARTS
from nearkin.units import counted

Words = Annotated[
    list[str] | None, typer.Argument(help="key=value words, optionally after a YAML file.", show_default=False)
]


def train_command(
    words: Words = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Stop at the final model, untested.")] = False,
    no_baseline: Annotated[bool, typer.Option("--no-baseline", help="Leave the untrained network out.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")] = False,
) -> None:
    """Train one run; the same command again resumes it, or shows its stored result.

    nearkin train dataset=glyphs loss=multi_similarity miner=multi_similarity dim=64

    The commonest keys: dataset, root, loss, miner, sampler, backbone, weights, dim, epochs, lr, seed, protocol, cut;
    loss.KEY for a loss's own, train.batch, train.select, data.size. All of them: docs/settings.md, or
    `nearkin explain KEY`; what there is to choose from: `nearkin list losses`.

    Many processes: torchrun --nproc-per-node 2 -m nearkin train ...
    """
    spec = make_spec(*read_words(words or []))
    quiet = quiet or as_json or not rank.first()
    began = time.time()
    with resumable(), training_bar(err, quiet) as watch:
        run = nearkin.train(spec, runs=runs, test=not no_test, watch=watch, tensorboard=tensorboard)
    if not rank.first():
        return
    if as_json:
        say_json(run.result if run.tested else run.read_json("final.json") | {"hash": run.hash})
        return
    say(Result(run, None if no_baseline or not run.tested else _untrained(run, runs)), *stored_before(run, began))


def _untrained(run: Run, runs: Path) -> Run | None:
    """The pooled features of the same network without training, beside which a trained one is read."""
    if run.result["epochs_trained"] == 0:
        return None

    def watch(entry: dict[str, Any]) -> None:
        if "plan" in entry:
            say("measuring the network without training too (once per network and data)", error=True)

    try:
        return nearkin.train(make_spec(run.spec, WITHOUT_PARTS, BASELINES["pooled"]), runs=runs, watch=watch)
    except NearkinError as error:  # a store that cannot be written: show what is there
        say(f"without the untrained network beside it: {in_flags(str(error))}", error=True)
        return None


def embed_command(
    run: Annotated[str, typer.Argument(help="A run: path, hash or the beginning of its hash.")],
    images: Annotated[Path, typer.Argument(help="A folder of images, or one image.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help=".npz: embeddings, paths, labels, which images the run was trained on."),
    ] = Path("emb.npz"),
    skip: Annotated[bool, typer.Option("--skip", help="Leave unreadable images out instead of stopping.")] = False,
    classes_from: Annotated[
        str | None, typer.Option("--classes-from", help="Which folders are classes: leaf, top, depth:N.")
    ] = None,
    runs: Runs = Path("runs"),
    trust: Trust = False,
) -> None:
    """Embed new images with a trained run; `nearkin evaluate emb.npz` measures them."""
    stored = Store(runs).find(run)
    saved = embed_folder(stored, lambda: nearkin.load(stored), images, output, skip=skip, classes_from=classes_from)
    say(f"{counted(saved.images, 'image')}, {saved.dim} dimensions: {output}")
    if saved.trained:
        say(f"run {stored.hash} was trained on {saved.trained:,} of them; nearkin evaluate leaves these out")
    say(*(in_flags(note.replace("data.classes_from", "classes_from")) for note in saved.notes))
    say(*(f"skipped: {path}: {reason}" for path, reason in saved.skipped))


@contextmanager
def resumable() -> Iterator[None]:
    """Ctrl-C and SIGTERM stop at the end of the step, with a checkpoint; say how it goes on."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stopped:
        if rank.first():
            say("interrupted; the same command goes on where this one stopped", error=True)
        raise typer.Exit(stopped.code if isinstance(stopped, SystemExit) else 130) from None  # type: ignore[arg-type]
    finally:
        signal.signal(signal.SIGTERM, before)
