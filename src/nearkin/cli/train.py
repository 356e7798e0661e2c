"""`nearkin train` and `nearkin embed`."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import nearkin
from nearkin.cli import tables
from nearkin.cli.options import Json, Runs
from nearkin.config.parse import parse_words, read_yaml
from nearkin.config.spec import make_spec
from nearkin.engine import distributed
from nearkin.progress import bar
from nearkin.runs import embed
from nearkin.runs.events import Watch

Words = Annotated[list[str] | None, typer.Argument(help="key=value words, or first a YAML file.", show_default=False)]


def train_command(
    words: Words = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Stop at the final model, untested.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")] = False,
) -> None:
    """Train one run; the same command again resumes it, or shows its stored result.

    nearkin train dataset=glyphs loss=multi_similarity miner=multi_similarity dim=64

    Many processes: torchrun --nproc-per-node 2 -m nearkin train ...
    """
    words = list(words or [])
    base = read_yaml(Path(words.pop(0))) if words and "=" not in words[0] else None
    spec = make_spec(base, parse_words(words))
    with resumable(), training_bar(tables.err, quiet or as_json or not distributed.first()) as watch:
        run = nearkin.train(spec, runs=runs, test=not no_test, watch=watch, tensorboard=tensorboard)
    if not distributed.first():
        return
    if as_json:
        print(json.dumps(run.result if run.tested else run.read_json("final.json") | {"hash": run.hash}))
        return
    tables.result(run)


def embed_command(
    run: Annotated[str, typer.Argument(help="A run: path, hash or the beginning of its hash.")],
    images: Annotated[Path, typer.Argument(help="A folder of images, or one image.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=".npz: embeddings, paths.")] = Path("emb.npz"),
    runs: Runs = Path("runs"),
) -> None:
    """Embed new images with a trained run."""
    saved = embed.embed_folder(nearkin.load(run, runs=runs), images, output)
    tables.out.print(f"{saved[0]} images, {saved[1]} dimensions: {output}", highlight=False)


@contextmanager
def resumable() -> Iterator[None]:
    """Ctrl-C costs the steps since the last checkpoint; say so."""
    try:
        yield
    except KeyboardInterrupt:
        if distributed.first():
            tables.err.print("interrupted; the same command goes on from the last checkpoint", highlight=False)
        raise typer.Exit(130) from None


@contextmanager
def training_bar(console: Console, quiet: bool) -> Iterator[Watch]:
    """A progress bar fed by the training loop; epochs are printed above it."""
    with bar("training", console=console, hide=quiet) as advance:
        drawn = 0.0

        def watch(entry: dict[str, Any]) -> None:
            nonlocal drawn
            if "epoch_end" in entry:
                if quiet:
                    return
                scores = " ".join(f"{m} {tables.percent(v)}" for m, v in entry.get("validation", {}).items())
                shown = f"validation {scores}" if scores else "no validation"
                console.print(f"epoch {entry['epoch_end']:>3}/{entry['epochs']}  {shown}", highlight=False)
                if "warning" in entry:
                    console.print(f"[yellow]warning:[/] {entry['warning']}", highlight=False)
            elif time.monotonic() - drawn > 0.1:
                drawn = time.monotonic()
                total = entry["steps_per_epoch"] * entry["epochs"]
                active = "" if entry["active"] is None else f", active {100 * entry['active']:.0f} %"
                advance(entry["step"], total, f"loss {entry['loss']:.4g}{active}, {entry['images_per_s']:.0f} images/s")

        yield watch
