"""The ready studies under studies/, and their real form."""

from pathlib import Path

from nearkin.studies.grid import read_study

FOLDER = Path(__file__).parents[1] / "studies"


def name(file):
    """A study by its path, as roth2020/cub."""
    return str(file.relative_to(FOLDER).with_suffix(""))


def real(content, *only):
    """A study in its real form, on all data sets of its file or only on these.

    Parameters:
        content: what its file holds.
        only: names of data sets, as cub.
    """
    names = only or {
        point["dataset"] for point in (content.get("real") or content).get("bases", {}).values() if "dataset" in point
    }
    roots = {f"root.{name}": "anywhere" for name in names}
    return read_study({**content, "name": "study"}, roots or {"root": "anywhere"})
