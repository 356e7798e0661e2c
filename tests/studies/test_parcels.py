"""Files of a run between two stores: whole, in order, and fitting each other wherever they are cut off."""

import json
import threading

import pytest

from nearkin.runs import run
from nearkin.studies.parcels import Packer, unpack


def files(path, **content):
    path.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (path / name.replace("__", "/").replace("_dot_", ".").replace("DASH", "-")).write_text(text)


def fits(path):
    """What a run needs to go on: the weights that a checkpoint names, all that final.json and result.json speak of."""
    found = {file.name for file in path.iterdir()}
    if "result.json" in found:
        assert {"final.json", "model.pt", "test.parquet", "embeddings.npz", "per_query.parquet"} <= found
    if "test.parquet" in found:
        assert "embeddings.npz" in found
    if "final.json" in found:
        assert {"model.pt", "validation.npz"} <= found
    elif "checkpoint.pt" in found:
        named, size = json.loads((path / "checkpoint.pt").read_text())
        assert f"model-{named}.pt" in found
        assert (path / "log.jsonl").stat().st_size >= size


def stages(path):
    """A run as its own process leaves it: begun, further, final, tested."""
    files(path, spec_dot_yaml="s", log_dot_jsonl="1\n2\n", modelDASH2_dot_pt="two", checkpoint_dot_pt="[2, 4]")
    yield
    files(path, log_dot_jsonl="1\n2\n3\n4\n", modelDASH3_dot_pt="three", checkpoint_dot_pt="[3, 8]")
    (path / "model-2.pt").unlink()
    yield
    files(path, model_dot_pt="three", validation_dot_npz="v", final_dot_json="f")
    (path / "model-3.pt").unlink()
    (path / "checkpoint.pt").unlink()
    yield
    files(path, **{f"{name}_dot_{end}": name for name, end in (
        ("embeddings", "npz"), ("test", "parquet"), ("per_query", "parquet"), ("result", "json"))})  # fmt: skip
    with open(path.parent / "openings.jsonl", "a") as notes:
        notes.write('{"split": "s0"}\n')
    yield


@pytest.mark.parametrize("cut", range(8))
def test_cut_off_anywhere_it_goes_on_from_there(tmp_path, monkeypatch, cut):
    there, here = tmp_path / "there" / "run", tmp_path / "here" / "run"
    packer, whole = Packer(there), run.atomic
    for _ in stages(there):
        parcel, left = packer.pack(), cut

        def failing(path):
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            return whole(path)

        here.mkdir(parents=True, exist_ok=True)
        with monkeypatch.context() as patched:
            patched.setattr(run, "atomic", failing)
            try:
                unpack(parcel, here)
            except KeyboardInterrupt:
                fits(here)
        parcel.openings.clear()                                     # were noted at once
        unpack(parcel, here)
        fits(here)
        assert {f.name: f.read_text() for f in here.iterdir()} == {f.name: f.read_text() for f in there.iterdir()}
    assert (here.parent / "openings.jsonl").read_text().count("\n") == 1


def test_only_what_is_new_travels_and_locks_stay(tmp_path):
    path = tmp_path / "run"
    files(path, spec_dot_yaml="s", lock="1", error_dot_txt="no")
    (path / ".model.pt.scratch").mkdir()
    (path / ".model.pt.scratch" / "model.pt").write_text("half")
    (path / "curve").mkdir()
    files(path, curve__epoch1="e")
    packer = Packer(path)
    assert set(packer.pack().files) == {"spec.yaml", "curve/epoch1"}
    files(path, curve__epoch2="e")
    assert packer.pack().files == {"curve/epoch2": b"e"}
    assert packer.pack().files == {}
    assert set(Packer(path, errors=True).pack().files) >= {"error.txt"}


def test_what_is_packed_while_the_run_goes_on_fits(tmp_path):
    path = tmp_path / "run"
    files(path, log_dot_jsonl="", modelDASH0_dot_pt="0", checkpoint_dot_pt="[0, 0]")
    over = threading.Event()

    def train():
        for epoch in range(1, 400):                                 # in the order of the loop
            with run.atomic(path / f"model-{epoch}.pt") as scratch:
                (scratch / f"model-{epoch}.pt").write_text(str(epoch))
            with open(path / "log.jsonl", "a") as log:
                log.write("x\n")
            with run.atomic(path / "checkpoint.pt") as scratch:
                (scratch / "checkpoint.pt").write_text(json.dumps([epoch, 2 * epoch]))
            (path / f"model-{epoch - 1}.pt").unlink()
        over.set()

    thread = threading.Thread(target=train)
    thread.start()
    packer, here, seen = Packer(path), tmp_path / "here" / "run", 0
    while not over.is_set():
        unpack(packer.pack(), here)
        fits(here)
        seen += 1
    thread.join()
    assert seen > 5
