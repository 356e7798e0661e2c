"""Where the test images of a run lie in two dimensions: computed once and stored with the run, in map.json."""

import contextlib
import io
import json
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from nearkin.errors import NearkinError, choices
from nearkin.evaluation.retrieval import one_thread
from nearkin.numerics import unit
from nearkin.pages._tested import Tested
from nearkin.progress import bar, note

MOST = 3000  # images on a map
PERPLEXITY, ITERATIONS, SEED = 30, 1000, 0
VERSION = 1  # raise it when the same embeddings begin to give another map
Method = Literal["tsne", "pca"]
CALLED = {"tsne": "t-SNE", "pca": "PCA"}


def embedding_map(tested: Tested, method: Method = "tsne", most: int = MOST) -> tuple[np.ndarray, np.ndarray]:
    """Places (M,) of the test images that are drawn, and their positions (M, 2) between 0 and 1; of stored maps that of
    the same embeddings and settings is taken, else one is made and stored."""
    if method not in CALLED:
        raise NearkinError(f"map {method!r}: {choices(method, CALLED)}")
    _ = tested.sets  # refuses what has no direction
    key = _key(tested, method, most)
    maps = _stored(tested)
    if maps.get(method, {}).get("key") == key:
        stored = maps[method]
        return np.array([tested.place_of[row] for row in stored["rows"]]), np.array([stored["x"], stored["y"]]).T
    places = np.sort(stratified(tested.labels, most))
    z = unit(tested.z[places].double()).numpy()  # (M, D)
    positions = _scaled(_tsne(z) if method == "tsne" and len(z) > 10 else _pca(z))
    x, y = positions.T.tolist()
    new = {"key": key, "method": method, "rows": tested.rows[places].tolist(), "x": x, "y": y}
    try:
        tested.run.write_json("map.json", {**maps, method: new})
    except (NearkinError, OSError):
        note(f"run {tested.run.hash} cannot be written: its map is not stored and will be made again")
    return places, positions


def stratified(labels: Sequence[str] | np.ndarray, most: int) -> np.ndarray:
    """Numbers of at most `most` items, of every class as many as its share is (largest remainders; one at least where
    there is room), drawn within a class by a fixed seed."""
    names, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(labels) <= most:
        return np.arange(len(labels))
    wanted = counts * most / len(labels)  # (C,)
    take = np.floor(wanted).astype(int)
    if len(names) <= most:
        take = np.maximum(take, 1)
    order = np.lexsort((np.arange(len(names)), take - wanted))  # largest remainder first
    while take.sum() < most:
        for c in order:
            if take.sum() < most and take[c] < counts[c]:
                take[c] += 1
    while take.sum() > most:  # small classes were rounded up
        take[np.argmax(take)] -= 1
    rng = np.random.default_rng(SEED)
    return np.concatenate([rng.permutation(np.flatnonzero(index == c))[: take[c]] for c in range(len(names))])


def _key(tested: Tested, method: str, most: int) -> str:
    key = blake2b(digest_size=8)
    key.update(json.dumps([VERSION, method, most, PERPLEXITY, SEED, list(tested.z.shape)]).encode())
    key.update(np.ascontiguousarray(tested.z.numpy()).data)
    key.update(json.dumps([tested.rows.tolist(), tested.labels.tolist()]).encode())
    return key.hexdigest()


def _stored(tested: Tested) -> dict[str, Any]:
    try:
        maps = json.loads((tested.run.path / "map.json").read_text())
    except (OSError, ValueError):
        return {}
    return maps if isinstance(maps, dict) else {}


def _scaled(positions: np.ndarray) -> np.ndarray:
    """Between 0 and 1, the longer side filling it, the shape kept; rounded as they are stored."""
    low, span = positions.min(0), np.ptp(positions, axis=0).max() or 1.0
    return ((positions - low) / span).round(5)  # (M, 2)


def _pca(z: np.ndarray) -> np.ndarray:
    centred = z - z.mean(0)
    with one_thread():
        _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = np.resize(axes[:2], (2, z.shape[1]))
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])[:, None]  # the sign is arbitrary: fix it
    return centred @ axes.T  # (M, 2)


def _tsne(z: np.ndarray) -> np.ndarray:
    """Barnes-Hut t-SNE in one thread: with several, the order of its sums and with it the map would vary."""
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(z) - 1) / 3)
    layout = TSNE(2, perplexity=perplexity, init="pca", random_state=SEED, verbose=2)
    with (
        one_thread(),
        bar(f"t-SNE of {len(z):,} images", ITERATIONS) as advance,
        contextlib.redirect_stdout(_Iterations(advance)),
    ):
        return layout.fit_transform(z.astype(np.float32)).astype(float)


class _Iterations(io.StringIO):
    """Moves a bar by what scikit-learn prints: `[t-SNE] Iteration 50: error = ...`."""

    def __init__(self, advance: Any):
        super().__init__()
        self.advance = advance

    def write(self, text: str) -> int:
        """Take a printed text."""
        if number := re.search(r"Iteration (\d+):", text):
            self.advance(int(number[1]))
        return len(text)
