"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Runs = Annotated[Path, typer.Option("--runs", help="Folder of the stored runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
