"""Where does a network look? The strongest channels of its last map, and the regions that make two images similar."""

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nearkin.analysis._over_runs import OneMethod, interval_of, methods_of
from nearkin.analysis._regions import Parts, parts_of, regions
from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import Loaded, last_map, loaded, stratified, test_images
from nearkin.comparison.gather import Gathered, Member
from nearkin.errors import NearkinError
from nearkin.evaluation.search import neighbours
from nearkin.present import Chart, Column, Pictures, Table, overlaid
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.runs.prepare import Data
from nearkin.runs.store import Run
from nearkin.runs.tested import TestSet
from nearkin.units import NUMBER, SHARE

STRONGEST = 3
MOST = 4  # runs side by side
SHOWN = 12  # images of a panel
CHANNELS = "The strongest channels of the last map (mean activation)"
ALIKE = "What makes two images similar"
PAIR_COLUMNS = (
    *("images", "first", "second", "classes", "method", "run"),
    Column("cosine", unit=NUMBER),
    Column("rest", "head", NUMBER, signed=True),
    Column("first_rest", "head, first", NUMBER, signed=True),
    Column("second_rest", "head, second", NUMBER, signed=True),
    Column("first_quarter", "quarter, first", SHARE, digits=0),
    Column("second_quarter", "quarter, second", SHARE, digits=0),
)
PAIR_NUMBERS = {"cosine": "cosine", "rest": "rest", "quarter": "quarters"}


@dataclass(frozen=True)
class Seen:
    """What one run shows of N images and Q pairs of images."""

    name: str
    run: str
    pixels: np.ndarray  # (N, H, W, 3) uint8
    channels: np.ndarray  # (N, 3) the strongest
    means: np.ndarray  # (N, 3) their mean activation
    maps: np.ndarray  # (N, 3, h, w)
    pair_pixels: np.ndarray  # (Q, 2, H, W, 3) uint8
    regions: np.ndarray  # (Q, 2, h, w) c_u of both images
    rest: np.ndarray  # (Q, 2) what belongs to no place
    cosine: np.ndarray  # (Q,)
    of: str  # embedding, or pooled feature

    @property
    def title(self) -> str:
        """Its name above a picture."""
        return self.name.replace("_", " ")

    @property
    def quarters(self) -> np.ndarray:
        """(Q, 2) how much of each pair the best quarter of the places carries, in both images."""
        return np.array([[concentration(side) for side in pair] for pair in self.regions])

    def above(self, i: int) -> list[str]:
        """What stands above the maps of image i: its channels, and the name of the run above those of the first."""
        return [f"{self.title}\n{k}" if i == j == 0 else str(k) for j, k in enumerate(self.channels[i])]


@ANALYSES.register("activation")
@dataclass(frozen=True)
class Activation(Analysis):
    """Side by side for two runs: the three strongest channels of the last map, and which regions make images similar.

        strongest   the channels of the last map whose mean over its places is largest, image by image
        regions     c_u = ψ_u·z' / (‖z‖‖z'‖), which sum to the cosine of two embeddings (analysis/_regions.py)

    Given a study, it looks at the best trained method and at the untrained network beside it, else at the worst method.

    Source: Lim et al. 2022 (section D) for the channels, Stylianou et al. 2019 (WACV) for the regions.

    Parameters:
        seen: one for each run.
        image_rows: (N,) rows of the images in the data set.
        pairs: (Q, 2) rows of the pairs.
        classes: row -> name of its class.
        options: images, seed and pair.
    """

    together: ClassVar[bool] = True
    needs_pixels: ClassVar[bool] = True

    seen: list[Seen]
    image_rows: np.ndarray
    pairs: np.ndarray
    classes: dict[int, str]
    options: dict[str, Any]

    @classmethod
    def between(
        cls, gathered: Gathered, *, images: int | None = 4, seed: int = 0, pair: tuple[int, int] | None = None
    ) -> "Activation":
        """Of some test images, each paired with the image that is nearest to it for the first run.

        Parameters:
            gathered: the runs.
            images: how many images are shown, 12 at most.
            seed: of the choice of images.
            pair: rows of two test images, in place of the pairs that are chosen.
        """
        members = chosen(gathered)
        first = members[0][1].run
        rows, labels = test_images(first)
        shown = rows[stratified(labels, min(images or SHOWN, SHOWN), seed)]
        pairs = np.array([pair]) if pair is not None else nearest(first, shown)
        for row in pairs.ravel().tolist():
            if row not in rows:
                raise NearkinError(f"pair={pair}: row {row} is no test image of run {first.hash}")
        known: dict[str, Data] = {}
        seen = []
        for name, member in track(members, "Looking at runs", len(members)):
            if member.head["data_hash"] != members[0][1].head["data_hash"]:
                raise NearkinError(f"runs {first.hash} and {member.run.hash} were tested on different images")
            seen.append(look(name, member.run.hash, loaded(member.run, known=known), shown, pairs))
        classes = dict(zip(rows.tolist(), labels.tolist(), strict=True))
        names = {int(row): str(classes[int(row)]) for row in (*shown, *pairs.ravel())}
        return cls(seen, shown, pairs, names, {"images": images, "seed": seed, "pair": pair and list(pair)})

    def _by_run(self, name: str, at: int) -> dict[str, Any]:
        """Run -> what it shows of an image, or of a pair."""
        return {seen.run: getattr(seen, name)[at].tolist() for seen in self.seen}

    @property
    def numbers(self) -> dict[str, Any]:
        """The strongest channels of every image, and of every pair its cosine and how few places carry it."""
        return {
            "runs": [{"name": seen.name, "run": seen.run, "decomposed": seen.of} for seen in self.seen],
            "images": [
                {"row": row, "class": self.classes[row]}
                | {name: self._by_run(name, i) for name in ("channels", "means")}
                for i, row in enumerate(self.image_rows.tolist())
            ],
            "pairs": [
                {"rows": pair, "classes": [self.classes[row] for row in pair]}
                | {key: self._by_run(name, q) for key, name in PAIR_NUMBERS.items()}
                for q, pair in enumerate(self.pairs.tolist())
            ],
        }

    @property
    def tables(self) -> list[Table]:
        """One row per image and run, with its strongest channels; one row per pair and run."""
        channels = [
            [row, self.classes[row], seen.name, seen.run]
            + [value for pair in zip(seen.channels[i].tolist(), seen.means[i].tolist(), strict=True) for value in pair]
            for i, row in enumerate(self.image_rows.tolist())
            for seen in self.seen
        ]
        columns: list[Column | str] = [Column("row", "image"), "class", "method", "run"]
        for k in range(1, self.seen[0].channels.shape[1] + 1):
            columns += [Column(f"channel_{k}", f"channel {k}"), Column(f"mean_{k}", "mean", NUMBER)]
        pairs = []
        for (q, (a, b)), seen in product(enumerate(self.pairs.tolist()), self.seen):
            same = "same" if self.classes[a] == self.classes[b] else "different"
            rest = [float(seen.rest[q].mean()), *seen.rest[q].tolist()]
            values = [float(seen.cosine[q]), *rest, *seen.quarters[q].tolist()]
            pairs.append([f"{a}, {b}", a, b, same, seen.name, seen.run, *values])
        notes = [
            "head: what belongs to no place, the bias of the head; quarter: the share of all that places add (above 0) "
            "which the best quarter of them adds, in the first and the second image; 25 would be even",
            "figures draw a place where it lies in the map; what it sees is wider and, behind strided convolutions, "
            "may be centred elsewhere",
        ]
        notes += [
            f"{seen.name}: its head is not affine, so the pooled feature is decomposed, and the cosine is its cosine"
            for seen in self.seen
            if seen.of != "embedding"
        ]
        return [Table("channels", columns, channels, CHANNELS), Table("pairs", PAIR_COLUMNS, pairs, ALIKE, notes)]

    @property
    def charts(self) -> list[Chart]:
        """The images under their strongest channels, and the regions that make two images similar."""
        channels, pairs = [], []
        for i in range(len(self.image_rows)):
            images, above = [self.seen[0].pixels[i]], [""]
            for seen in self.seen:
                images += [overlaid(seen.pixels[i], one, "magma", one.min(), one.max()) for one in seen.maps[i]]
                above += seen.above(i)
            channels.append((images, above))
        for q, rows in enumerate(self.pairs.tolist()):
            images, above = list(self.seen[0].pair_pixels[q]), [self.classes[row] for row in rows]
            for seen in self.seen:
                limit = float(np.abs(seen.regions[q]).max()) or 1.0  # one scale per pair and run
                both = zip(seen.pair_pixels[q], seen.regions[q], strict=True)
                images += [overlaid(pixels, one, "RdBu_r", -limit, limit) for pixels, one in both]
                above += [f"{seen.title}\n" * (q == 0) + f"cosine {NUMBER.text(float(seen.cosine[q]), 2)}", ""]
            pairs.append((images, above))
        words = "Test images, then each of them under its three strongest channels of the last map, run by run."
        regions = "Two images, then what their places add to their similarity, run by run: red adds, blue takes away."
        return [
            Pictures(
                name=name, title=title, alt=alt, images=[row for row, _ in rows], captions=[row for _, row in rows]
            )
            for name, title, alt, rows in (("channels", CHANNELS, words, channels), ("pairs", ALIKE, regions, pairs))
        ]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Maps and regions."""
        keys = ("channels", "maps", "regions")
        by_run = {f"{key}_{seen.run}": getattr(seen, key) for seen in self.seen for key in keys}
        return {"rows": self.image_rows, "pairs": self.pairs, **by_run}


def chosen(gathered: Gathered) -> list[tuple[str, Member]]:
    """The runs that are put side by side, with their names: all where they are few; else the first seed of the trained
    method with the highest MAP@R, over seeds, and the untrained network, else the trained method with the lowest."""
    methods = methods_of(gathered)
    if len({member.run.hash for member in gathered.tested}) <= MOST:
        order = {member.run.hash: i for i, member in enumerate(gathered.members)}
        several = [(_name(method, member), member) for method in methods for member in method.members]
        return sorted(several, key=lambda pair: order[pair[1].run.hash])

    def score(method: OneMethod) -> float:
        interval = interval_of(method.metric("map_at_r"))
        return 0.0 if interval is None else interval.mean

    trained = sorted((method for method in methods if method.trained), key=score, reverse=True)
    untrained = [method for method in methods if not method.trained]
    picked = [*trained[:1], *(untrained[:1] or trained[1:][-1:])]
    return [(method.name, min(method.members, key=lambda member: (member.seed, member.fold or 0))) for method in picked]


def _name(method: OneMethod, member: Member) -> str:
    """The name of a run among others: its method, and its seed and fold where the method has several."""
    seeds, folds = ({getattr(one, what) for one in method.members} for what in ("seed", "fold"))
    words = [f"seed {member.seed}"] * (len(seeds) > 1) + [f"fold {member.fold}"] * (len(folds) > 1)
    return ", ".join([method.name, *words])


def look(name: str, run: str, seen: Loaded, shown: np.ndarray, pairs: np.ndarray) -> Seen:
    """What a loaded model shows of these rows (N,) and pairs of rows (Q, 2)."""
    pixels = seen.pixels.test(shown)  # (N, 3, H, W)
    with torch.no_grad():
        maps = last_map(seen.model, seen.model.record.normalise(pixels.to(seen.device))).float().cpu()
    channels, means = strongest(maps)  # (N, 3)
    at = channels[:, :, None, None].expand(-1, -1, *maps.shape[2:])
    both = seen.pixels.test(pairs.ravel())  # (2Q, 3, H, W)
    parts = parts_of(seen.model, both.to(seen.device))
    first, second = (Parts(parts.z[i::2], parts.places[i::2], parts.rest[i::2], parts.of) for i in (0, 1))
    here, there, rest, cosine = (tensor.cpu().numpy() for tensor in regions(first, second))
    return Seen(
        name,
        run,
        _upright(pixels),
        channels.numpy(),
        means.numpy(),
        maps.gather(1, at).numpy(),
        _upright(both).reshape(len(pairs), 2, *both.shape[2:], 3),
        np.stack([here, there], 1),
        rest.T,
        cosine,
        parts.of,
    )


def strongest(maps: Tensor) -> tuple[Tensor, Tensor]:
    """The channels of largest mean activation of maps (B, C, h, w), the strongest first, and these means: (B, 3)."""
    means = maps.mean((2, 3))  # (B, C)
    top = means.topk(min(STRONGEST, means.shape[1]), dim=1)
    return top.indices, top.values


def nearest(run: Run, rows: np.ndarray) -> np.ndarray:
    """(N, 2) each of these rows with the test image that is nearest to it in the stored embeddings of a run."""
    stored = TestSet.of(run)
    tested = test_images(run)[0] if stored.rows is None else stored.rows
    number = {row: place for place, row in enumerate(tested.tolist())}
    at = np.array([number[row] for row in rows.tolist()])
    index = neighbours(stored.z[torch.from_numpy(at)], stored.z, 1, self_index=at).index
    return np.stack([rows, tested[index[:, 0].numpy()]], 1)


def concentration(added: np.ndarray) -> float:
    """The share of what places (h, w) add, above 0, that the best quarter of them adds."""
    values = np.sort(added.clip(0).ravel())[::-1]
    total = values.sum()
    return float(values[: max(1, -(-len(values) // 4))].sum() / total) if total > 0 else 0.0


def _upright(images: Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).cpu().numpy()
