"""`nearkin demo`: the tournament in small, from training to the report."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.options import Runs

FULL = """\
# nearkin demo --full: every registered loss on glyphs with its defaults, 3 seeds. About an hour on 2 cores.
name: demo-full
base: {{dataset: glyphs, backbone: convnet, dim: 64, epochs: 8, protocol: fixed_val}}
axes:
  loss: [{losses}]
seeds: [0, 1, 2]
metrics: [recall@1, recall@2, recall@4, recall@8, r_precision, map_at_r]
"""


def demo_command(
    full: Annotated[bool, typer.Option("--full", help="Every registered loss and 3 seeds: about an hour.")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Runs at a time, one thread each.")] = 2,
    output: Annotated[Path, typer.Option("--output", "-o", help="The report.")] = Path("report.html"),
    runs: Runs = Path("runs"),
) -> None:
    """Train and compare losses on the embedded data, then write the report. Nothing is downloaded."""
    from nearkin import studies
    from nearkin.cli.report import report_command
    from nearkin.cli.study import study_command
    from nearkin.registry import LOSSES
    from nearkin.storage import check_writable

    file, name = Path(studies.__path__[0]) / "demo.yaml", "demo"
    check_writable(output)
    if full:
        file, name = runs / "demo-full.yaml", "demo-full"
        runs.mkdir(parents=True, exist_ok=True)
        file.write_text(FULL.format(losses=", ".join(LOSSES.names())))
    study_command(file, workers=workers, runs=runs)
    report_command([name], output=output, runs=runs)
