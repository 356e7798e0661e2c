"""The command line: parse, call, print."""

import errno
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live

import nearkin
from nearkin.cli import catalogue, doctor
from nearkin.cli import tables as show
from nearkin.cli.look import Json, Runs, analyse_app, data_app, runs_app
from nearkin.config.parse import parse_words, read_yaml
from nearkin.config.spec import make_spec
from nearkin.engine import distributed
from nearkin.errors import NearkinError
from nearkin.evaluation.readers import evaluate_files
from nearkin.evaluation.render import progress_bar, render, write_per_query
from nearkin.runs import embed as inference
from nearkin.runs.store import Store

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Train and compare image-retrieval embeddings fairly.")  # fmt: skip
app.add_typer(data_app, name="data")
app.add_typer(runs_app, name="runs")
app.add_typer(analyse_app, name="analyse")

Words = Annotated[list[str] | None, typer.Argument(help="key=value words, or first a YAML file.", show_default=False)]


@app.command("train")
def train_command(
    words: Words = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")] = False,
) -> None:
    """Train one run; the same command again resumes it, or shows its stored result.

    nearkin train dataset=glyphs loss=multi_similarity miner=multi_similarity dim=64

    Many processes: torchrun --nproc-per-node 2 -m nearkin train ...
    """
    words = list(words or [])
    base = read_yaml(Path(words.pop(0))) if words and "=" not in words[0] else None
    spec = make_spec(base, parse_words(words))
    with resumable(), show.training_bar(show.err, quiet or as_json or not distributed.first()) as watch:
        run = nearkin.train(spec, runs=runs, watch=watch, tensorboard=tensorboard)
    if not distributed.first():
        return
    if as_json:
        print(json.dumps(run.result))
        return
    show.result(run)


@app.command("embed")
def embed_command(
    run: Annotated[str, typer.Argument(help="A run: path, hash or the beginning of its hash.")],
    images: Annotated[Path, typer.Argument(help="A folder of images, or one image.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=".npz: embeddings, paths.")] = Path("emb.npz"),
    runs: Runs = Path("runs"),
) -> None:
    """Embed new images with a trained run."""
    saved = inference.embed_folder(nearkin.load(run, runs=runs), images, output)
    show.out.print(f"{saved[0]} images, {saved[1]} dimensions: {output}", highlight=False)


@app.command("evaluate")
def evaluate_command(
    embeddings: Annotated[Path | None, typer.Argument(help="Embeddings: .npy .npz .parquet .pt .safetensors")] = None,
    labels: Annotated[Path | None, typer.Argument(help="Labels, numbers or words, when not in the same file.")] = None,
    query: Annotated[str | None, typer.Option(help="Mask or indices of the queries, or a file of their own.")] = None,
    gallery: Annotated[str | None, typer.Option(help="The same for the gallery; FILE or EMBEDDINGS,LABELS.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="k of Recall@k, as in 1,2,4,8.")] = None,
    metrics: Annotated[str | None, typer.Option(help="As in recall@1,map_at_r,nmi: nearkin list metrics.")] = None,
    metric: Annotated[str, typer.Option(help="cosine, euclid (raw vectors) or snr.")] = "cosine",
    budget: Annotated[int, typer.Option(help="MiB of working memory beside the embeddings.")] = 256,
    bootstrap: Annotated[int, typer.Option(help="Resamples of an interval over classes (not seeds).")] = 0,
    per_query: Annotated[Path | None, typer.Option(help="Write one row a query into this .parquet.")] = None,
    as_json: Json = False,
) -> None:
    """Retrieval, clustering and space metrics of anyone's embeddings, exact, in bounded memory."""
    names = metrics.split(",") if metrics else None
    with progress_bar(show.err) as progress:
        evaluation = evaluate_files(
            embeddings, labels, query=query, gallery=gallery, k=_numbers(k), metrics=names, metric=metric,
            budget_mib=budget, bootstrap=bootstrap, progress=progress,
        )  # fmt: skip
    if per_query is not None:
        write_per_query(evaluation, per_query)
    print(json.dumps(evaluation.to_dict())) if as_json else show.out.print(render(evaluation))


def _numbers(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(x) for x in text.split(","))
    except ValueError:
        raise NearkinError(f"--k {text!r}: whole numbers separated by commas, as in 1,2,4,8") from None


@app.command("study")
def study_command(
    file: Annotated[Path, typer.Argument(help="A study: base, axes, seeds in YAML.")],
    words: Annotated[list[str] | None, typer.Argument(help="key=value words over its base, as root=DIR.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Runs at a time, one thread each.")] = 1,
    runs: Runs = Path("runs"),
    csv: Annotated[Path | None, typer.Option("--csv", help="Where the table goes; default RUNS/NAME.csv.")] = None,
) -> None:
    """Run what is not stored yet of a grid of runs; print mean and standard deviation over seeds."""
    from nearkin.studies import grid as studies

    study = studies.read_study(file, parse_words(words or []))
    jobs = studies.jobs_of(study, Store(runs))
    told: set[str] = set()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))         # end the workers too, as Ctrl-C does
    with resumable(), Live(console=show.err, refresh_per_second=4, transient=True) as live:
        for _ in studies.run_jobs(jobs, runs=runs, workers=workers):
            if show.err.is_terminal:
                live.update(show.jobs_table(jobs))
                continue
            for job in jobs:
                if job.state in ("done", "failed") and job.run.hash not in told:
                    told.add(job.run.hash)
                    show.err.print(f"{job.state}: {' '.join(job.cell.labels)} seed {job.cell.seed}", highlight=False)
    rows = studies.rows_of(study, jobs)
    target = csv or runs / f"{study.name}.csv"
    studies.write_csv(study, rows, target)
    show.out.print(show.study_table(study, rows))
    show.out.print(f"table: {target}, runs: {runs}/", highlight=False, soft_wrap=True)
    failed = [job for job in jobs if job.error is not None]
    for job in failed:
        show.err.print(f"failed: {' '.join(job.cell.labels)} seed {job.cell.seed}: {job.error}", highlight=False)
    if failed:
        raise typer.Exit(1)


@app.command("list")
def list_command(
    kind: Annotated[str, typer.Argument(help="|".join(catalogue.KINDS))], as_json: Json = False
) -> None:
    """What there is to choose from."""
    found = catalogue.entries(kind)
    if as_json:
        print(json.dumps(found))
        return
    last = "source" if any("source" in e for e in found) else "about"
    columns = [c for c in ("name", "takes", "gives", "defaults", last) if any(c in e for e in found)]

    def cell(value: Any) -> str:
        return ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else str(value)

    rows = [[cell(entry.get(c, "")) for c in columns] for entry in found]
    show.out.print(show.table(None, dict.fromkeys(columns, "left"), rows))


@app.command("doctor")
def doctor_command(as_json: Json = False) -> None:
    """What this machine can do, what is missing, and the known traps."""
    findings = doctor.examine()
    if as_json:
        print(json.dumps([vars(f) for f in findings]))
        return
    colour = {"ok": "green", "missing": "yellow", "trap": "red"}
    rows = [[f.what, f"[{colour[f.state]}]{f.state}[/]", f.detail.replace("[", r"\[")] for f in findings]
    show.out.print(show.table(None, {"what": "left", "state": "left", "detail": "left"}, rows))


@contextmanager
def resumable() -> Iterator[None]:
    """Ctrl-C costs the steps since the last checkpoint, and says so."""
    try:
        yield
    except KeyboardInterrupt:
        if distributed.first():
            show.err.print("interrupted; the same command goes on from the last checkpoint", highlight=False)
        raise typer.Exit(130) from None


def main() -> None:
    """Bad input is one line on stderr and exit code 2; never a traceback."""
    try:
        app()
    except NearkinError as error:
        fail(str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        fail(f"the disk is full: {error.filename or 'cannot write'}")


def fail(message: str) -> None:
    print(f"nearkin: {distributed.prefix()}{message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
