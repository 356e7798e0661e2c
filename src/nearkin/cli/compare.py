"""`nearkin compare` and `nearkin tournament`: verdicts about stored runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Csv, Json, Latex, Markdown, Runs, write_tables
from nearkin.errors import NearkinError

Names = Annotated[
    list[str] | None, typer.Argument(help="A study (its name or file), a folder of runs, or runs: hashes, paths.")
]
By = Annotated[str | None, typer.Option("--by", help="What rows are, as in loss or data,loss; default: all axes.")]


def keys_of(by: str | None) -> list[str] | None:
    """The words of --by."""
    return [word.strip() for word in by.split(",") if word.strip()] or None if by is not None else None


def compare_command(
    names: Names = None,
    by: By = None,
    metric: Annotated[str, typer.Option("--metric", help="What is compared: nearkin list metrics.")] = "map_at_r",
    reading: Annotated[str, typer.Option(help="Which epoch: chosen, last, test_best, test_best_each.")] = "chosen",
    evaluation: Annotated[str, typer.Option(help="Of folds: separated, or concatenated.")] = "separated",
    within: Annotated[
        float | None, typer.Option("--within", min=0.0, help="Points that are too few to matter; default: 1.")
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Every two rows, not each against the best by validation.")
    ] = False,
    claims: Annotated[bool, typer.Option("--claims", help="What the literature says, checked against these.")] = False,
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for the figures, as PNG and SVG.")] = None,
    csv: Csv = None,
    markdown: Markdown = None,
    latex: Latex = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Means with intervals, differences on what rows have in common, and a verdict for each of them."""
    from nearkin.comparison import figures as drawn
    from nearkin.comparison import pages
    from nearkin.comparison.compare import canonical_metric, compare, measure_missing
    from nearkin.comparison.gather import gather
    from nearkin.evaluation.metrics.base import metric_of

    gathered = gather(names or [], runs)
    if within is not None and metric_of(canonical_metric(metric)).is_share:
        within /= 100
    if evaluation not in gathered.evaluations and evaluation != "separated":
        raise NearkinError(f"--evaluation {evaluation}: {gathered.name} has {', '.join(gathered.evaluations)}")
    measure_missing(gathered, metric, evaluation)
    found = compare(gathered, by=keys_of(by), metric=metric, reading=reading, evaluation=evaluation, within=within)
    sheets: dict[str, pages.Sheet] = {}
    for comparison in found:
        suffix = f"-{comparison.data}" if len(found) > 1 else ""
        sheets |= {f"{name}{suffix}": sheet for name, sheet in pages.sheets(comparison).items()}
    if claims:
        sheets["claims"] = pages.claims_sheet(gathered, reading)
    if as_json:
        print(json.dumps([pages.told(comparison) for comparison in found]))
    else:
        for name, sheet in sheets.items():
            if not name.startswith("differences" if all_pairs else "pairs"):  # files have both
                tables.sheet(pages.measured_claims(sheet) if name == "claims" else sheet)
    files = write_tables(sheets, csv=csv, markdown=markdown, latex=latex)
    if figures is not None:
        for comparison in found:
            suffix = f"-{comparison.data}" if len(found) > 1 else ""
            files += drawn.save(drawn.differences(comparison), figures / f"differences{suffix}")
            standing = pages.standing_of(comparison)
            if standing is not None and standing.test is not None:
                files += drawn.save(drawn.critical_difference(standing), figures / f"critical_difference{suffix}")
    if files:
        tables.err.print(f"written: {', '.join(map(str, files))}", highlight=False, soft_wrap=True)


def tournament_command(
    names: Names = None,
    published: Annotated[
        bool, typer.Option("--published", help="Over the published tables of Psomas 2020 instead.")
    ] = False,
    by: By = None,
    metric: Annotated[str, typer.Option("--metric", help="What ranks them; Psomas 2020: recall@1.")] = "recall@1",
    csv: Csv = None,
    markdown: Markdown = None,
    latex: Latex = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Ranks over experiments: total, average and sample standard deviation of every method's ranks."""
    from nearkin.comparison import pages
    from nearkin.comparison.compare import compare, measure_missing
    from nearkin.comparison.gather import gather
    from nearkin.comparison.tournament import standing

    if published == bool(names):
        raise NearkinError("nearkin tournament: name a study, or give --published; one of the two")
    if published:
        sheets, told = pages.published_tournaments()
    else:
        gathered = gather(names or [], runs)
        keys = keys_of(by)
        if keys is None and gathered.axes:
            keys = [gathered.axes[0] if gathered.axes[0] != "base" else gathered.axes[min(1, len(gathered.axes) - 1)]]
        measure_missing(gathered, metric)
        standings = {c.data: standing(c) for c in compare(gathered, by=keys, metric=metric)}
        sheets = {
            f"tournament-{data}": pages.tournament_sheet(each, f"{gathered.name} on {data}, by {metric}")
            for data, each in standings.items()
        }
        told = [pages.standing_told(each) | {"data": data} for data, each in standings.items()]
    if as_json:
        print(json.dumps(told))
    else:
        for sheet in sheets.values():
            tables.sheet(sheet)
    files = write_tables(sheets, csv=csv, markdown=markdown, latex=latex)
    if files:
        tables.err.print(f"written: {', '.join(map(str, files))}", highlight=False, soft_wrap=True)
