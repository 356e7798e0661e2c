"""Files in, numbers out; nothing is unpickled, and every broken file is one line."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from nearkin.errors import NearkinError
from nearkin.evaluation.per_query import write_per_query
from nearkin.evaluation.readers import evaluate_files, read, read_set
from nearkin.evaluation.retrieval import evaluate


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    labels = np.arange(48) % 6
    return (random.normal(size=(6, 5))[labels] + random.normal(size=(48, 5))).astype(np.float32), labels


def write(kind, folder, z, labels):
    """One file with both, in every way that people have them."""
    path = folder / f"set{kind.partition(' ')[0]}"
    names = np.array([f"c{label}" for label in labels])
    columns = {"id": pa.array([f"item {i}" for i in range(len(z))]), "label": pa.array(names)}
    lists = pa.array(list(z), pa.list_(pa.float32()))
    {
        ".npz": lambda: np.savez(path, embeddings=z, labels=names),
        ".npz unnamed": lambda: np.savez(path, z, labels),
        ".pt": lambda: torch.save({"features": torch.from_numpy(z), "targets": torch.from_numpy(labels)}, path),
        ".pt strings": lambda: torch.save({"embeddings": torch.from_numpy(z), "labels": names.tolist()}, path),
        ".safetensors": lambda: save_file({"emb": torch.from_numpy(z), "y": torch.from_numpy(labels)}, path),
        ".parquet": lambda: pq.write_table(pa.table(columns | {"embedding": lists}), path, row_group_size=10),
        ".parquet fixed": lambda: pq.write_table(
            pa.table({"label": labels, "embedding": pa.FixedSizeListArray.from_arrays(z.ravel(), 5)}), path
        ),
        ".parquet wide": lambda: pq.write_table(pa.table(columns | {f"d{i}": z[:, i] for i in range(5)}), path),
        ".parquet categories": lambda: pq.write_table(
            pa.table({"label": pa.array(names).dictionary_encode(), "embedding": lists}), path
        ),
    }[kind]()
    return path


KINDS = [
    ".npz",
    ".npz unnamed",
    ".pt",
    ".pt strings",
    ".safetensors",
    ".parquet",
    ".parquet fixed",
    ".parquet wide",
    ".parquet categories",
]


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_with_both(kind, data, tmp_path):
    assert evaluate_files(write(kind, tmp_path, *data)).metrics == evaluate(*data).metrics


def test_two_files(data, tmp_path):
    z, labels = data
    np.save(tmp_path / "z.npy", z)
    np.save(tmp_path / "y.npy", labels.astype(str))
    torch.save(torch.from_numpy(z), tmp_path / "z.pt")
    expected = evaluate(z, labels).metrics
    assert evaluate_files(tmp_path / "z.npy", tmp_path / "y.npy").metrics == expected
    assert evaluate_files(tmp_path / "z.pt", str(tmp_path / "y.npy")).metrics == expected


def test_query_and_gallery_files(data, tmp_path):
    z, labels = data
    np.savez(tmp_path / "q.npz", embeddings=z[:10], labels=labels[:10])
    np.save(tmp_path / "gz.npy", z[10:])
    np.save(tmp_path / "gy.npy", labels[10:])
    expected = evaluate(z[:10], labels[:10], gallery=(z[10:], labels[10:])).metrics
    apart = evaluate_files(query=tmp_path / "q.npz", gallery=f"{tmp_path / 'gz.npy'},{tmp_path / 'gy.npy'}")
    assert apart.metrics == expected
    whole = write(".npz", tmp_path, z, labels)
    np.save(tmp_path / "mask.npy", np.arange(48) < 10)
    np.save(tmp_path / "rest.npy", np.arange(10, 48))
    chosen = evaluate_files(whole, query=tmp_path / "mask.npy", gallery=tmp_path / "rest.npy")
    assert chosen.metrics == expected


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")  # torch, of the trap that the test sets
def test_objects_are_never_unpickled(data, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.save(tmp_path / "o.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "o.npz", embeddings=np.array([Trap()], dtype=object), labels=data[1])
    (tmp_path / "o.pt").write_bytes(pickle.dumps(Trap()))
    torch.save({"embeddings": Trap()}, tmp_path / "p.pt")
    for name in ("o.npy", "o.npz", "o.pt", "p.pt"):
        with pytest.raises(NearkinError, match=name):
            read(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".pt", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"this is not it", "cut"])
def test_damaged_files(suffix, content, data, tmp_path):
    path = tmp_path / f"set{suffix}"
    if content == "cut":
        if suffix == ".npy":
            np.save(path, data[0])
        else:
            write(suffix, tmp_path, *data)
        content = path.read_bytes()[:-100]
    path.write_bytes(content)
    with pytest.raises(NearkinError, match="set") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_what_is_missing_is_named(data, tmp_path):
    z, labels = data
    np.save(tmp_path / "z.npy", z)
    np.savez(tmp_path / "two.npz", a=z, b=z, c=labels)
    pq.write_table(pa.table({"label": ["a", "b"], "embedding": [[1.0, 2.0], [1.0]]}), tmp_path / "ragged.parquet")
    pq.write_table(pa.table({"label": ["a", None], "embedding": [[1.0, 2.0], [1.0, 2.0]]}), tmp_path / "empty.parquet")
    for arguments, words in (
        (("nowhere.npy",), "no such file"),
        (("z.npy",), "no labels: name a second file"),
        (("two.npz",), "a, b, c: which of them holds the embeddings"),
        (("ragged.parquet",), "lists of 1 to 2 values"),
        (("empty.parquet",), "'label' has 1 empty values"),
        (("z.csv",), r"unknown format '.csv'; choices: .npy"),
    ):
        with pytest.raises(NearkinError, match=words):
            read_set(*(tmp_path / name for name in arguments))
    with pytest.raises(NearkinError, match="both a query and a gallery"):
        evaluate_files(query=tmp_path / "z.npy")
    with pytest.raises(NearkinError, match="a mask or indices"):
        evaluate_files(tmp_path / "z.npy", tmp_path / "z.npy", gallery=tmp_path / "two.npz")


def test_per_query_file(data, tmp_path):
    z, labels = data
    labels = labels.copy()
    labels[3] = 9
    result = evaluate(z, labels)
    write_per_query(result, tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["query", "label", *result.per_query]
    assert table["label"].to_pylist() == labels.tolist()
    assert table["map_at_r"][3].as_py() is None
    assert table["recall@1"].to_pylist() == result.per_query["recall@1"].tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]
    with pytest.raises(NearkinError, match="cannot be written"):
        write_per_query(result, tmp_path / "no such folder" / "out.parquet")
