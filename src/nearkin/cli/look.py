"""Commands that look at what is there: `nearkin data`, `nearkin runs`, `nearkin analyse`."""

import json
from pathlib import Path
from typing import Annotated

import typer

import nearkin
from nearkin.cli import tables as show
from nearkin.registry import DATASETS
from nearkin.runs.store import Store

data_app = typer.Typer(no_args_is_help=True, help="Look at data sets.")
runs_app = typer.Typer(no_args_is_help=True, help="Look at stored runs.")
analyse_app = typer.Typer(no_args_is_help=True, help="Look into what a run has learned.")

Runs = Annotated[Path, typer.Option("--runs", help="Folder of the stored runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@data_app.command("verify")
def verify_command(
    name: Annotated[str, typer.Argument(help="Name of the data set, or of its adapter.")],
    root: Annotated[Path | None, typer.Option("--root", help="Its folder or file.")] = None,
    as_json: Json = False,
) -> None:
    """Count, compare with the official counts, open every image; exit code 1 when something is wrong."""
    table = nearkin.data.load_table(name, root)
    report = nearkin.data.verify(table, getattr(DATASETS[name], "official", None))
    print(json.dumps(report.to_dict())) if as_json else show.verified(report)
    if not report.ok:
        raise typer.Exit(1)


@runs_app.command("list")
def runs_list(runs: Runs = Path("runs"), as_json: Json = False) -> None:
    """All stored runs."""
    found = Store(runs).runs()
    if as_json:
        print(json.dumps([{"hash": r.hash, "done": r.done, "result": r.result if r.done else None} for r in found]))
    elif found:
        show.out.print(show.runs_table(found))
    else:
        show.out.print(f"no runs in {runs}", highlight=False)


@runs_app.command("show")
def runs_show(run: str, runs: Runs = Path("runs"), as_json: Json = False) -> None:
    """One run: spec and result."""
    found = Store(runs).find(run)
    if as_json:
        print(json.dumps({"spec": found.spec.tree(), "result": found.result if found.done else None}))
        return
    show.out.print((found.path / "spec.yaml").read_text(), highlight=False)
    if not found.done:
        show.out.print("not finished: the command that began it goes on with it")
        return
    show.result(found)


@runs_app.command("rm")
def runs_rm(run: Annotated[list[str], typer.Argument()], runs: Runs = Path("runs")) -> None:
    """Remove runs."""
    store = Store(runs)
    for found in [store.find(name) for name in run]:
        store.remove(found)
        show.out.print(f"removed {found.hash}", highlight=False)


@analyse_app.command("prototypes")
def analyse_prototypes(
    run: Annotated[str, typer.Argument(help="A finished run with loss=hist: path, hash or the beginning of its hash.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A folder; default: that of the run.")] = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Learned means against true class means, learned variances against the spread of the classes."""
    from nearkin import analysis

    stored = Store(runs).find(run)
    found = analysis.prototypes_of(stored)
    folder = output or stored.path
    files = ", ".join(path.name for path in analysis.save_prototypes(found, folder))
    if as_json:
        print(json.dumps(found.summary))
        return
    show.out.print(show.table(None, {"what": "left", "value": "right"}, found.rows()))
    show.out.print(f"stored: {files} in {folder}", highlight=False, markup=False, soft_wrap=True)
