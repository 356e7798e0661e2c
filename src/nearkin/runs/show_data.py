"""`nearkin.show_data`: what data sets look like, what is in them, and how hard they are for an untrained network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.config.parse import canonical
from nearkin.config.spec import make_spec
from nearkin.data import open_images
from nearkin.data.samples import sample_rows
from nearkin.errors import NearkinError
from nearkin.models.start import starting_network
from nearkin.present import Chart, Column, Pictures, Shown, Table
from nearkin.registry import DATASETS
from nearkin.runs.data import Data
from nearkin.runs.fit import train
from nearkin.runs.prepare import prepare
from nearkin.runs.run import Run
from nearkin.runs.test import test
from nearkin.runs.tested import TestSet
from nearkin.units import COUNT, NUMBER, SHARE

POOLED = {"model.head": "none", "train.epochs": 0}  # the pooled feature of the backbone, as it comes
METRICS = ("recall@1", "map_at_r", "pi_intra", "pi_inter")
LONGEST = 1_000_000  # no image is longer: sizes are those of the files
ADVICE = "weights=imagenet with a backbone that has them (`nearkin doctor --weights`)"


@dataclass(frozen=True)
class DataSet:
    """A data set with its measurements.

    Parameters:
        name: what it is called here.
        data: its rows and images.
        shapes: (N, 2) height and width of every image, as the files have them.
        run: the untrained network on it.
        metrics: METRICS of that run's test images.
    """

    name: str
    data: Data
    shapes: np.ndarray
    run: Run
    metrics: Mapping[str, float]

    def sheet(self) -> Chart:
        """Images of some classes, a row for each of them; classes and images are spread evenly over all."""
        table = self.data.table
        rows = sample_rows(table.labels)
        return Pictures(
            name=f"samples-{self.name}",
            title=f"{self.name}: images of {len(rows)} of {len(np.unique(table.labels)):,} classes",
            images=[[self.data.pixels[int(i)] for i in row] for row in rows],
            rows=[table.classes[int(table.labels[row[0]])] for row in rows],
            alt=f"Images of {len(rows)} classes of {self.name}, a row for each, spread evenly over the class",
        )


class ShownData(Shown):
    """Data sets side by side: counts and sizes, and how hard they are for an untrained network.

    Parameters:
        sets: the data sets.
    """

    def __init__(self, sets: Sequence[DataSet]):
        self.sets = sets

    @property
    def tables(self) -> list[Table]:
        """What is in the data, and how hard they are."""
        return [self._contents(), self._hardness()]

    @property
    def charts(self) -> list[Chart]:
        """A sheet of samples for every data set."""
        return [one.sheet() for one in self.sets]

    def save(self, folder: Path | str) -> list[Path]:
        """Write the sheets as PNG and SVG into a folder."""
        return [file for chart in self.charts for file in chart.save(Path(folder) / chart.name)]

    def _contents(self) -> Table:
        rows = []
        for one in self.sets:
            sizes = np.unique(one.data.table.labels, return_counts=True)[1]
            height, width = np.median(one.shapes, axis=0).tolist()
            sides = [int(one.shapes.min()), int(one.shapes.max())]
            per_class = [float(sizes.mean()), int(sizes.min()), int(sizes.max())]
            rows.append([one.name, int(sizes.sum()), len(sizes), *per_class, f"{width:.0f} x {height:.0f}", *sides])
        columns = [
            Column("data", "data set"),
            Column("images", unit=COUNT),
            Column("classes", unit=COUNT),
            Column("per_class", "images per class", unit=NUMBER, digits=1),
            Column("fewest", "fewest to most", unit=COUNT, to="most"),
            Column("most", unit=COUNT),
            Column("median_size", "median pixels"),
            Column("shortest", "sides from, to", unit=COUNT, to="longest"),
            Column("longest", unit=COUNT),
        ]
        skipped = [
            f"{s.name}: {len(s.data.skipped):,} unreadable images are left out" for s in self.sets if s.data.skipped
        ]
        return Table("contents", columns, rows, "What is in the data", skipped)

    def _hardness(self) -> Table:
        rows, notes = [], []
        for one in self.sets:
            labels, spec = TestSet.of(one.run).labels, one.run.spec
            given = spec.model.weights is not None
            network = f"{spec.model.backbone}, {'given' if given else 'random'} weights, {spec.data.size} px"
            rows.append([one.name, network, len(labels), len(np.unique(labels)), *map(one.metrics.get, METRICS)])
            if not given:
                notes.append(
                    f"{one.name}: no weights were given, so the network is at random ones, and its numbers say how far "
                    f"pixels alone go, not how hard the data are for a pretrained network: {ADVICE}"
                )
        columns = [
            Column("data", "data set"),
            Column("network"),
            Column("test_images", "test images", unit=COUNT),
            Column("test_classes", "test classes", unit=COUNT),
            Column("recall@1", "Recall@1", unit=SHARE),
            Column("map_at_r", "MAP@R", unit=SHARE),
            Column("pi_intra", "within classes", unit=NUMBER),
            Column("pi_inter", "between classes", unit=NUMBER),
        ]
        notes += [
            "measured on the test images, by default the second half of the classes (protocol=... takes others), with "
            "the pooled feature of a network that was not trained on these data",
            "within, between: mean cosine distance of two images of a class, and of the means of two classes",
        ]
        return Table("hardness", columns, rows, "How hard they are for the untrained network", notes)


def show_data(*data: str | Path | Mapping[str, Any], runs: Path | str = "runs", **words: Any) -> ShownData:
    """Data sets as they are: a sheet of samples, counts, sizes, and how hard they are for the untrained network.

    The untrained network is an ordinary run, stored under `runs`, which studies take for their baseline too.

    Parameters:
        data: names of data sets, folders with one folder per class, or words such as {"dataset": "cub", "root": DIR}.
        runs: the folder of the stored runs.
        words: settings of all of them; `root` is that of a single data set, {"root.cub": DIR} that of one by its name.

    Example:
        shown = nearkin.show_data("my_images", "cub", **{"root.cub": "CUB_200_2011"})
        print(shown)
        shown.save("samples")
    """
    named = _named(data, dict(words))
    sets: list[DataSet] = []
    for name, given in named.items():
        network, _ = starting_network(canonical(given))
        known: dict[str, Data] = {}
        prepared = prepare(make_spec(network, given, POOLED), known)
        (content,) = known.values()
        run = train(prepared, runs=runs)
        sets.append(DataSet(name, content, _shapes(content), run, test(run, metrics=METRICS)))
    return ShownData(sets)


def _named(data: Sequence[str | Path | Mapping[str, Any]], words: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each data set is called -> its words."""
    roots = {key.removeprefix("root."): words.pop(key) for key in [*words] if key.startswith("root.")}
    sets: list[dict[str, Any]] = []
    for one in data:
        if isinstance(one, Mapping):
            sets.append(canonical(one))
        elif str(one) not in DATASETS and Path(one).expanduser().is_dir():
            sets.append({"data.name": "folder", "data.root": str(one)})
        else:
            sets.append({"data.name": str(one)})
    known = [one.get("data.name") for one in sets]
    sets += [{"data.name": name} for name in roots if name not in known]
    if not sets:
        raise NearkinError("no data to show: name a data set, a folder, or root.NAME=DIR, as in root.cub=CUB_200_2011")
    if len(sets) > 1 and {"root", "data.root"} & words.keys():
        raise NearkinError(f"root={words.get('root')}: of which of {len(sets)} data sets? write root.NAME=DIR")
    named: dict[str, dict[str, Any]] = {}
    for one in sets:
        root = {"data.root": roots[one["data.name"]]} if one.get("data.name") in roots else {}
        given = {**words, **one, **root}
        name = str(canonical(given).get("data.name", "glyphs"))
        if name == "folder" and canonical(given).get("data.root"):
            name = Path(canonical(given)["data.root"]).expanduser().resolve().name
        named[name if name not in named else f"{name}-{len(named) + 1}"] = given
    return named


def _shapes(data: Data) -> np.ndarray:
    """(N, 2) heights and widths of the images themselves."""
    if data.table.images is not None:
        return np.tile(data.table.images.shape[1:3], (len(data.table), 1))
    return open_images(data.table, resize=1, keep=LONGEST, cache="none", known_hash=data.hash).shapes
