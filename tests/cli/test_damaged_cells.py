"""A study one of whose runs is damaged: `study` heals or names it, `analyse`, `compare` and `report` name it and go on
with the others."""

import re
import shutil

import pytest
from stores import said

from nearkin.runs.store import Store

STUDY = """
name: small
base: {dataset: glyphs, data.classes: 12, data.per_class: 6, data.size: 16, backbone: convnet, dim: 8, train.batch: 8,
       sampler.per_class: 2, epochs: 1, train.batches_per_epoch: 2}
axes:
  loss: [triplet, margin]
seeds: [0]
baselines: []
"""
DAMAGES = {
    "spec.yaml": lambda file: file.write_text(file.read_text().replace("size: 16", "size: 17")),
    "final.json": lambda file: file.unlink(),
    "result.json": lambda file: file.write_text("{"),
    "embeddings.npz": lambda file: file.write_bytes(flipped(file)),
    "model.pt": lambda file: file.write_bytes(flipped(file)),
}
UNSEEN = {
    ("model.pt", "compare"),
    ("model.pt", "study"),
    ("model.pt", "report"),  # which do not read them
    ("embeddings.npz", "compare"),
    ("embeddings.npz", "study"),
}


def flipped(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 64
    return content


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    root = tmp_path_factory.mktemp("ran")
    (root / "small.yaml").write_text(STUDY)
    code, told = said("study", root / "small.yaml", "--runs", root / "runs")
    assert code == 0, told
    return root


@pytest.mark.parametrize("name", DAMAGES)
def test_one_run_is_damaged(ran, tmp_path, name):
    runs = shutil.copytree(ran / "runs", tmp_path / "runs")
    bad, good = (
        next(run for run in Store(runs).runs() if run.stored["loss"]["name"] == loss) for loss in ("triplet", "margin")
    )
    before = good.metrics()
    DAMAGES[name](bad.path / name)
    page = tmp_path / "page.html"
    for words in (("compare", "small"), ("report", "small", "-o", page, "--no-map"), ("analyse", "spectrum", "small")):
        code, told = said(*words, "--runs", runs)
        assert code == 0, (words, told)
        told += page.read_text() if words[0] == "report" else ""
        if (name, words[0]) not in UNSEEN:
            assert re.search(rf"run {bad.hash} is damaged: {re.escape(name)}", told), (words, told)
        assert "margin" in told or words[0] == "analyse"
    code, told = said("study", ran / "small.yaml", "--runs", runs)
    if code == 0:
        assert " is damaged" not in told
        assert (name, "study") in UNSEEN or bad.metrics()
    else:
        assert bad.hash in told, told
        assert " is damaged: " in told, told
    assert good.metrics() == before
