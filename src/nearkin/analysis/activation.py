"""Where does a network look? The strongest channels of its last map, and the regions that make two images similar."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.embedded import Loaded, last_map, loaded, stratified, test_images
from nearkin.analysis.over_runs import OneMethod, interval_of, methods_of
from nearkin.analysis.regions import Parts, parts_of, regions
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.pages import Sheet
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.runs.prepare import Data
from nearkin.runs.tested import TestSet

STRONGEST = 3
MOST = 4  # runs side by side
SHOWN = 12  # images of a panel


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


@ANALYSES.register("activation")
@dataclass(frozen=True)
class Activation(Analysis):
    """Side by side for two runs: the three strongest channels of the last map, and which regions make images similar.

        strongest   the channels of the last map whose mean over its places is largest, image by image
        regions     c_u = ψ_u·z' / (‖z‖‖z'‖), which sum to the cosine of two embeddings (analysis/regions.py)

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
    image_rows: np.ndarray  # (N,)
    pairs: np.ndarray  # (Q, 2)
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
        found = []
        for name, member in track(members, "Looking at runs", len(members)):
            if member.head["data_hash"] != members[0][1].head["data_hash"]:
                raise NearkinError(f"runs {first.hash} and {member.run.hash} were tested on different images")
            found.append(look(name, member.run.hash, loaded(member.run, known=known), shown, pairs))
        classes = dict(zip(rows.tolist(), labels.tolist(), strict=True))
        own = {int(row): str(classes[int(row)]) for row in (*shown, *pairs.ravel())}
        return cls(found, shown, pairs, own, {"images": images, "seed": seed, "pair": pair and list(pair)})

    @property
    def summary(self) -> dict[str, Any]:
        """The strongest channels of every image, and of every pair its cosine and how few places carry it."""
        return {
            "runs": [{"name": s.name, "run": s.run, "decomposed": s.of} for s in self.seen],
            "images": [
                {
                    "row": int(row),
                    "class": self.classes[int(row)],
                    "channels": {s.run: s.channels[i].tolist() for s in self.seen},
                    "means": {s.run: s.means[i].tolist() for s in self.seen},
                }
                for i, row in enumerate(self.image_rows)
            ],
            "pairs": [
                {
                    "rows": [int(a), int(b)],
                    "classes": [self.classes[int(a)], self.classes[int(b)]],
                    "cosine": {s.run: float(s.cosine[q]) for s in self.seen},
                    "rest": {s.run: s.rest[q].tolist() for s in self.seen},
                    "quarter": {s.run: [concentration(s.regions[q, side]) for side in (0, 1)] for s in self.seen},
                }
                for q, (a, b) in enumerate(self.pairs)
            ],
        }

    def sheets(self) -> dict[str, Sheet]:
        """Channels of the images, and pairs."""
        images = [
            [
                str(row),
                self.classes[int(row)],
                s.name,
                ", ".join(f"{c} ({m:.2g})" for c, m in zip(s.channels[i], s.means[i], strict=True)),
            ]
            for i, row in enumerate(self.image_rows)
            for s in self.seen
        ]
        pairs = [
            [
                f"{a}, {b}",
                "same" if self.classes[int(a)] == self.classes[int(b)] else "different",
                s.name,
                f"{s.cosine[q]:.3f}",
                f"{s.rest[q].mean():+.3f}",
                *(f"{100 * concentration(s.regions[q, side]):.0f}" for side in (0, 1)),
            ]
            for q, (a, b) in enumerate(self.pairs)
            for s in self.seen
        ]
        notes = [
            "head: what belongs to no place, the bias of the head; quarter: the share of all that places add (above 0) "
            "which the best quarter of them adds, in the first and the second image; 25 would be even",
            "figures draw a place where it lies in the map; what it sees is wider and, behind strided convolutions, "
            "may be centred elsewhere",
        ]
        notes += [
            f"{s.name}: its head is not affine, so the pooled feature is decomposed, and the cosine is its cosine"
            for s in self.seen
            if s.of != "embedding"
        ]
        header = ["images", "classes", "method", "cosine", "head", "quarter %", "quarter % "]
        return {
            "channels": Sheet(
                "The strongest channels of the last map (mean activation)",
                ["image", "class", "method", "channels"],
                images,
                0,
            ),
            "pairs": Sheet("What makes two images similar", header, pairs, 4, notes),
        }

    def tables(self) -> dict[str, Table]:
        """One row per image, run and channel; one row per pair and run."""
        channels = [
            [int(row), s.name, s.run, int(s.channels[i, k]), float(s.means[i, k])]
            for s in self.seen
            for i, row in enumerate(self.image_rows)
            for k in range(s.channels.shape[1])
        ]
        pairs = [
            [
                int(a),
                int(b),
                s.name,
                s.run,
                float(s.cosine[q]),
                *s.rest[q].tolist(),
                *(concentration(s.regions[q, side]) for side in (0, 1)),
            ]
            for q, (a, b) in enumerate(self.pairs)
            for s in self.seen
        ]
        header = [
            "first",
            "second",
            "method",
            "run",
            "cosine",
            "first_rest",
            "second_rest",
            "first_quarter",
            "second_quarter",
        ]
        return {"channels": (["row", "method", "run", "channel", "mean"], channels), "pairs": (header, pairs)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """Maps and regions, and the two panels."""
        from nearkin.analysis import activation_figures as figures

        def arrays(path: Path) -> None:
            held = {f"{what}_{s.run}": getattr(s, what) for s in self.seen for what in ("channels", "maps", "regions")}
            np.savez(path, rows=self.image_rows, pairs=self.pairs, **held)

        return {
            "activation.npz": arrays,
            "activation_channels.png": lambda path: figures.channels(self).savefig(path),
            "activation_pairs.png": lambda path: figures.pairs(self).savefig(path),
        }


def chosen(gathered: Gathered) -> list[tuple[str, Member]]:
    """The runs that are put side by side, with their names: all where they are few; else the first seed of the trained
    method with the highest MAP@R, over seeds, and the untrained network, else the trained method with the lowest."""
    methods = methods_of(gathered)
    if len({member.run.hash for member in gathered.tested}) <= MOST:
        given = {member.run.hash: i for i, member in enumerate(gathered.members)}
        several = [(_name(method, member), member) for method in methods for member in method.members]
        return sorted(several, key=lambda each: given[each[1].run.hash])

    def score(method: OneMethod) -> float:
        interval = interval_of(method.metric("map_at_r"))
        return 0.0 if interval is None else interval.mean

    trained = sorted((method for method in methods if method.trained), key=score, reverse=True)
    untrained = [method for method in methods if not method.trained]
    picked = [*trained[:1], *(untrained[:1] or trained[1:][-1:])]
    return [(method.name, min(method.members, key=lambda member: (member.seed, member.fold or 0))) for method in picked]


def _name(method: OneMethod, member: Member) -> str:
    """The name of a run among others: its method, and its seed and fold where the method has several."""
    seeds, folds = ({getattr(each, what) for each in method.members} for what in ("seed", "fold"))
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
    found = means.topk(min(STRONGEST, means.shape[1]), dim=1)
    return found.indices, found.values


def nearest(run: Any, rows: np.ndarray) -> np.ndarray:
    """Each of these rows with the test image that is nearest to it in the stored embeddings of a run.       (N, 2)"""
    stored = TestSet.of(run)
    e = unit(stored.z.float())
    known = test_images(run)[0] if stored.rows is None else stored.rows
    place = {int(row): i for i, row in enumerate(known)}
    at = torch.tensor([place[int(row)] for row in rows])
    s = e[at] @ e.T  # (N, all)
    s[torch.arange(len(at)), at] = -torch.inf
    return np.stack([rows, known[s.argmax(1).numpy()]], 1)


def concentration(found: np.ndarray) -> float:
    """The share of what places (h, w) add, above 0, that the best quarter of them adds."""
    values = np.sort(found.clip(0).ravel())[::-1]
    total = values.sum()
    return float(values[: max(1, -(-len(values) // 4))].sum() / total) if total > 0 else 0.0


def _upright(images: Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).cpu().numpy()
