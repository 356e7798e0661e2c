"""`nearkin evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.options import Json, Runs, words_of
from nearkin.cli.screen import err, say, say_json
from nearkin.errors import NearkinError
from nearkin.evaluation.per_query import check_per_query, write_per_query
from nearkin.evaluation.readers import evaluate_files
from nearkin.progress import bar
from nearkin.runs.store import Run, Store


def evaluate_command(
    embeddings: Annotated[
        str | None, typer.Argument(help="Embeddings (.npy .npz .parquet .pt .safetensors), or a tested run.")
    ] = None,
    labels: Annotated[Path | None, typer.Argument(help="Labels, numbers or words, when not in the same file.")] = None,
    query: Annotated[str | None, typer.Option(help="Mask or indices of the queries, or a file of their own.")] = None,
    gallery: Annotated[str | None, typer.Option(help="The same for the gallery; FILE or EMBEDDINGS,LABELS.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="The k of Recall@k, such as 1,2,4,8.")] = None,
    metrics: Annotated[str | None, typer.Option(help="Such as recall@1,map_at_r,nmi (nearkin list metrics).")] = None,
    distance: Annotated[
        str, typer.Option("--distance", "--metric", help="cosine, euclid (raw vectors) or snr.")
    ] = "cosine",
    budget: Annotated[
        int | None, typer.Option(help="MiB of working memory beside the embeddings; 256, or what D needs.")
    ] = None,
    bootstrap: Annotated[int, typer.Option(help="Resamples for an interval over classes (not seeds).")] = 0,
    per_query: Annotated[Path | None, typer.Option(help="Write one row per query to this .parquet file.")] = None,
    include_trained: Annotated[
        bool, typer.Option("--include-trained", help="Measure images that the run of the file was trained on, too.")
    ] = False,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Retrieval, clustering and space metrics of anyone's embeddings, exact, in bounded memory."""
    if per_query is not None:
        check_per_query(per_query)
    if embeddings is not None and not Path(embeddings).suffix:
        embeddings = str(stored_embeddings(Store(runs).find(embeddings)))
    with bar("evaluating", console=err) as advance:
        evaluation = evaluate_files(
            embeddings,
            labels,
            query=query,
            gallery=gallery,
            include_trained=include_trained,
            k=numbers(k),
            metrics=words_of(metrics),
            distance=distance,
            budget_mib=budget,
            bootstrap=bootstrap,
            progress=advance,
        )
    if per_query is not None:
        write_per_query(evaluation, per_query)
    say_json(evaluation.to_dict()) if as_json else say(evaluation)


def stored_embeddings(run: Run) -> Path:
    """The test embeddings of a run, with labels and roles."""
    if not run.tested:
        raise NearkinError(f"run {run.hash} is not tested, so it has no test embeddings: {run.untested()}")
    return run.file("embeddings.npz")


def numbers(text: str | None) -> tuple[int, ...] | None:
    """`1,2,4,8` as numbers."""
    try:
        return None if text is None else tuple(int(x) for x in text.split(","))
    except ValueError:
        raise NearkinError(f"--k {text!r}: whole numbers separated by commas, as in 1,2,4,8") from None
