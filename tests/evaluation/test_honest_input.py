"""What a run was trained on is left out; a lone list is no label; identical embeddings are said."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.evaluation import evaluate
from nearkin.evaluation.identical import row_hashes
from nearkin.evaluation.readers import evaluate_files, read_set


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    labels = np.arange(48) % 6
    return (random.normal(size=(6, 5))[labels] + random.normal(size=(48, 5))).astype(np.float32), labels


@pytest.fixture
def file(data, tmp_path):
    """What `nearkin embed` writes: the run was trained on classes 0, 1 and 2, whose embeddings are perfect."""
    z, labels = data
    trained = labels < 3
    z[trained] = 9 * np.eye(5, dtype=np.float32)[labels[trained]] + z[trained] / 99
    paths = np.array([f"{i}.jpg" for i in range(48)])
    path = tmp_path / "emb.npz"
    np.savez(path, embeddings=z, labels=labels.astype(str), paths=paths, trained=trained, run=np.array("3f2a"))
    return path, z, labels, trained


def test_what_it_was_trained_on_is_left_out(file):
    path, z, labels, trained = file
    result, honest = evaluate_files(path), evaluate(z[~trained], labels[~trained].astype(str))
    assert result.metrics == honest.metrics
    assert (result.n, result.gallery) == (24, 24)
    assert result.notes == [f"{path}: run 3f2a was trained on 24 of the 48 images: they are left out"]
    assert "they are left out" in str(result)
    assert result.to_dict()["notes"] == result.notes
    assert result.rows.tolist() == np.flatnonzero(~trained).tolist()
    mixed = evaluate_files(path, include_trained=True)
    assert mixed.metrics == evaluate(z, labels.astype(str)).metrics
    assert mixed.metrics["map_at_r"] > result.metrics["map_at_r"] + 0.1
    assert mixed.notes[0].startswith("warning: ")
    assert "no honest test" in mixed.notes[0]


def test_on_the_command_line(file, tmp_path):
    path, z, labels, trained = file
    command = CliRunner()
    said = command.invoke(app, ["evaluate", str(path), "--per-query", str(tmp_path / "q.parquet")])
    assert said.exit_code == 0, said.output
    assert "24 of the 48 images: they are left out" in said.stdout.replace("\n", " ")
    assert pq.read_table(tmp_path / "q.parquet")["query"].to_pylist() == np.flatnonzero(~trained).tolist()
    told = json.loads(command.invoke(app, ["evaluate", str(path), "--include-trained", "--json"]).stdout)
    assert told["n"] == 48
    assert told["metrics"] == evaluate(z, labels.astype(str)).metrics


def test_with_labels_of_their_own_and_with_parts(file, tmp_path):
    path, z, labels, trained = file
    np.save(tmp_path / "y.npy", labels)
    assert evaluate_files(path, tmp_path / "y.npy").metrics == evaluate(z[~trained], labels[~trained]).metrics
    query = np.arange(48) < 24
    np.save(tmp_path / "query.npy", query)
    np.save(tmp_path / "gallery.npy", ~query)
    result = evaluate_files(path, query=tmp_path / "query.npy", gallery=tmp_path / "gallery.npy")
    expected = evaluate(z, labels.astype(str), query=query & ~trained, gallery=~query & ~trained)
    assert result.metrics == expected.metrics
    assert result.rows.tolist() == np.flatnonzero(query & ~trained).tolist()
    two = evaluate_files(query=path, gallery=path)
    assert (two.n, two.gallery) == (24, 24)
    assert len(two.notes) == 2  # they are left out; identical embeddings in both


def test_nothing_is_left(file, tmp_path):
    _, z, labels, _ = file
    np.savez(tmp_path / "all.npz", embeddings=z, labels=labels, trained=np.ones(48, bool))
    with pytest.raises(NearkinError, match=r"trained on 48 of the 48 images, so none is left .*include_trained=True"):
        evaluate_files(tmp_path / "all.npz")
    np.savez(tmp_path / "none.npz", embeddings=z, labels=labels, trained=np.zeros(48, bool))
    result = evaluate_files(tmp_path / "none.npz")
    assert (result.n, result.notes) == (48, [])


@pytest.mark.parametrize("name", ["price", "paths", "trained", "id"])
@pytest.mark.parametrize("kind", [".npz", ".pt"])
def test_a_lone_list_is_no_label(data, tmp_path, name, kind):
    z, labels = data
    if kind == ".npz":
        np.savez(tmp_path / "x.npz", **{"embeddings": z, name: labels})
    else:
        torch.save({"embeddings": torch.from_numpy(z), name: torch.from_numpy(labels)}, tmp_path / "x.pt")
    with pytest.raises(
        NearkinError, match=f"embeddings, {name}: which of them holds the labels\\? Name one of them 'labels'"
    ):
        read_set(tmp_path / f"x{kind}")


def test_a_list_that_is_named_so_is(data, tmp_path):
    z, labels = data
    np.savez(tmp_path / "x.npz", vectors=z, Label=labels, price=np.ones(48))
    assert (read_set(tmp_path / "x.npz")[1] == labels).all()
    np.savez(tmp_path / "y.npz", z, labels)  # arr_0, arr_1
    assert (read_set(tmp_path / "y.npz")[1] == labels).all()


# -- identical embeddings ---------------------------------------------------------------------------------------


def test_identical_embeddings_are_said(data):
    z, labels = data
    assert evaluate(z, labels).notes == []
    z[7] = z[3]
    z[40] = z[3]
    (note,) = evaluate(z, labels).notes
    assert note.startswith("warning: 3 of 48 embeddings are identical to another one")
    assert note in str(evaluate(z, labels))
    assert evaluate(z, labels, query=np.arange(10), gallery=np.arange(5, 48)).notes[0].startswith("warning: 3 of 48 ")
    other = evaluate(z[:10], labels[:10], gallery=(z[10:], labels[10:]))
    assert other.notes[0].startswith("warning: 3 of 48 ")


def test_a_collapsed_model_is_said(data):
    (note,) = evaluate(np.ones((48, 5)), data[1]).notes
    assert note.startswith("warning: all 48 embeddings are identical: the model has collapsed")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_hashes_of_rows(dtype):
    z = torch.randn(5000, 33, generator=torch.Generator().manual_seed(0)).to(dtype)
    z[4999] = z[0]
    z[1, 0], z[2] = 0.0, z[1]
    z[2, 0] = -0.0
    hashes = row_hashes(z)
    assert hashes[4999] == hashes[0]
    assert hashes[1] == hashes[2]
    assert len(np.unique(hashes)) == 4998
