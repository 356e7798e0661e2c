"""`nearkin compare`: verdicts about stored runs."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.options import Csv, Json, Latex, Markdown, Runs, Where, words_of, write_tables
from nearkin.cli.screen import say, say_json, say_written

Names = Annotated[
    list[str] | None, typer.Argument(help="A study (its name or file), a folder of runs, or runs: hashes, paths.")
]
By = Annotated[
    str | None, typer.Option("--by", help="What makes a row, for example loss or data,loss; default: all axes.")
]


def compare_command(
    names: Names = None,
    by: By = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="The metric to compare (nearkin list metrics); default: map_at_r.")
    ] = None,
    reading: Annotated[str, typer.Option(help="Which epoch: chosen, last, test_best, test_best_each.")] = "chosen",
    evaluation: Annotated[str, typer.Option(help="How folds are evaluated: separated or concatenated.")] = "separated",
    within: Annotated[
        float | None,
        typer.Option("--within", min=0.0, help="A difference that is too small to matter, in points; default: 1."),
    ] = None,
    against: Annotated[str, typer.Option("--against", help="The row to compare all others with.")] = "",
    where: Where = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Compare every two rows, not each with the best by validation.")
    ] = False,
    ranks: Annotated[bool, typer.Option("--ranks", help="Show a tournament: ranks over experiments.")] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="Check the claims of the literature against these runs.")
    ] = False,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for the figures, as PNG and SVG.")] = None,
    csv: Csv = None,
    markdown: Markdown = None,
    latex: Latex = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Means with intervals, differences on what rows have in common, and a verdict for each of them."""
    from nearkin.comparison.result import compare

    result = compare(
        *(names or []),
        runs=runs,
        by=words_of(by),
        metric=metric,
        reading=reading,
        evaluation=evaluation,
        within=within,
        against=against,
        where=where or (),
        all_pairs=all_pairs,
        ranks=ranks,
        claims=claims,
    )
    say_json(result.to_dict()) if as_json else say(result)
    files = write_tables(result.by_name, csv=csv, markdown=markdown, latex=latex)
    if figures is not None:
        files += [file for chart in result.charts for file in chart.save(figures / chart.name)]
    say_written(files)
