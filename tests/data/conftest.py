"""A cache of its own for every test, small images, and the real CUB when it is there."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "nearkin-cache"
    monkeypatch.setenv("NEARKIN_CACHE", str(folder))
    return folder


@pytest.fixture
def picture():
    """picture(path, seed): a small smooth image in a file, of the kind its name says; gives its pixels."""

    def make(path: Path, seed: int = 0, height: int = 24, width: int = 30) -> np.ndarray:
        rng = np.random.default_rng(seed)
        coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        image = coarse.resize((width, height), Image.Resampling.BICUBIC)
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
        return np.asarray(image)

    return make


@pytest.fixture(scope="session")
def cub_root():
    here = Path(__file__).resolve().parents[2]
    root = Path(os.environ.get("NEARKIN_CUB", here.parent / "shared" / "data" / "CUB_200_2011"))
    if not (root / "images.txt").is_file():
        pytest.skip("the real CUB-200-2011 is absent; NEARKIN_CUB=DIR names it")
    return root
