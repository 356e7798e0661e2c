"""Sentences that a newcomer stumbled on: what was wrong is said in one line that names what was written."""

import numpy as np
import pytest
import torch

import nearkin
from nearkin.cli import app as cli
from nearkin.comparison.gather import gather
from nearkin.config import bounds
from nearkin.config.load_yaml import load_yaml
from nearkin.config.parse import ALIASES, parse_words
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.runs.prepare import prepare


def refusal(call, *given, **settings):
    """The one line in which a call is refused."""
    with pytest.raises(NearkinError) as raised:
        call(*given, **settings)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def command(monkeypatch, capsys, *words):
    """What a refused command says."""
    monkeypatch.setattr("sys.argv", ["nearkin", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    line = capsys.readouterr().err
    assert ended.value.code == 2, line
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize(
    "words", [["dataset", "=", "folder"], ["dataset", "=folder"], ["dataset=", "folder"]], ids=" ".join
)
def test_spaces_around_the_equals_sign(words, monkeypatch, capsys):
    assert "write dataset=folder, without spaces" in command(monkeypatch, capsys, "train", *words)
    assert "write dataset=folder, without spaces" in refusal(parse_words, ["dim=4", *words])


def test_a_setting_without_its_value(monkeypatch, capsys):
    assert "'dataset' is a setting" in command(monkeypatch, capsys, "train", "dataset")
    assert "no such file" in command(monkeypatch, capsys, "train", "no_such.yaml").lower()


@pytest.mark.parametrize("key", ["root", "loss", "epochs", "data.exclude"])
def test_an_empty_value(key):
    said = refusal(parse_words, [f"{key}="])
    assert f"{key}=VALUE" in said
    assert "8" not in said
    full = ALIASES.get(key, key)
    assert refusal(make_spec, {key: ""}).startswith(f"{full}='' is empty")
    assert refusal(make_spec, parse_words([f'{key}=""'])).startswith(f"{full}='' is empty")


@pytest.mark.parametrize("text", ["1e400", "-1e400", ".inf", ".nan"])
def test_a_number_beyond_all_numbers(text):
    for key, words in {"loss.margin": ["loss=triplet"], "train.lr": [], "sampler.per_class": []}.items():
        said = refusal(make_spec, parse_words([*words, f"{key}={text}"]))
        assert said == f"{key}={float(text.replace('.', '', 1) if text[0] == '.' else text)}: must be a finite number"


@pytest.mark.parametrize(
    "words",
    [
        {"epochs": True},
        {"epochs": False},
        {"lr": True},
        {"dim": True},
        {"train.groups.loss.lr": True},
        {"loss": "triplet", "loss.margin": True},
        {"sampler": "balanced", "sampler.per_class": True},
    ],
    ids=str,
)
def test_yes_is_no_number(words):
    key = list(words)[-1]
    said = refusal(make_spec, words)
    assert key.rpartition(".")[2] in said
    assert "true or false" in said
    assert make_spec(parse_words(["train.curve=yes", "train.amp=yes"])).train.curve is True


def test_a_key_twice_in_yaml(tmp_path, monkeypatch, capsys):
    said = refusal(load_yaml, "axes: {loss: [triplet]}\nseeds: [0]\nname: a\nseeds: [1]\n")
    assert "'seeds' is given twice, in lines 2 and 4" in said
    assert "'dim' is given twice, in lines 3 and 4" in refusal(
        load_yaml, "base:\n  loss: triplet\n  dim: 4\n  dim: 5\n"
    )
    assert "twice in line 1" in refusal(load_yaml, "{dim: 4, dim: 5}")
    (tmp_path / "s.yaml").write_text("axes: {loss: [triplet]}\nseeds: [0]\nseeds: [1]\n")
    assert "s.yaml" in command(monkeypatch, capsys, "study", str(tmp_path / "s.yaml"))
    merged = "a: &a {x: 1, y: 1}\nb:\n  c: &c {<<: *a, x: 2}\nd: {<<: *c, y: 3}\n"
    assert load_yaml(merged)["b"]["c"] == {"x": 2, "y": 1}
    assert load_yaml(merged)["d"] == {"x": 2, "y": 3}


def test_more_images_per_class_than_a_batch_has(tiny):
    words = {k: v for k, v in tiny.items() if k not in ("train.batch", "sampler.per_class", "sampler")}
    said = refusal(prepare, make_spec({**words, "sampler": "balanced", "sampler.per_class": 1000}))
    assert said.startswith("sampler.per_class=1000: ")
    assert "train.batch=" not in said
    assert "at most 100" in said


def test_a_run_without_its_model(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path, epochs=0)
    (run.path / "model.pt").unlink()
    assert "model.pt is missing" in refusal(nearkin.load, run.hash, runs=tmp_path)
    (run.path / "files.json").unlink()  # as stored before there were sums
    said = refusal(nearkin.load, run.hash, runs=tmp_path)
    assert "model.pt is missing" in said
    assert run.hash in said


def test_a_large_dimension_is_evaluated():
    z = np.random.default_rng(0).normal(size=(6, 7000)).astype(np.float32)
    assert nearkin.evaluate(z, [0, 0, 1, 1, 2, 2]).metrics["recall@1"] >= 0
    assert "budget_mib=256: at least" in refusal(nearkin.evaluate, z, [0, 0, 1, 1, 2, 2], budget_mib=256)


def test_a_dimension_that_memory_cannot_hold(monkeypatch):
    monkeypatch.setattr(bounds, "available_memory", lambda: 2**30)
    said = refusal(prepare, make_spec({"dataset": "cub", "root": "/nowhere", "dim": 65536}))
    assert said.startswith("model.dim=65536: ")
    assert "1.00 GiB are available" in said


@pytest.mark.parametrize("key", ["data.size", "data.resize", "data.keep", "data.crop"])
def test_images_that_memory_cannot_hold(key):
    said = refusal(prepare, make_spec({"dataset": "cub", "root": "/nowhere", key: 10_000_000}))
    assert said.startswith(f"{key}=10000000: ")
    assert "are available" in said


@pytest.mark.parametrize(("separator", "called"), [(",", "comma"), (";", "semicolon"), ("\t", "tab")])
def test_a_list_with_another_separator(separator, called, tmp_path):
    file = tmp_path / "list.csv"
    rows = [["path", "label", "age"], ["a, b.png", "x", "1"], ["c; d.png", "y", "2"]]
    quoted = [[f'"{v}"' if separator in v else v for v in row] for row in rows]
    file.write_text("\n".join(separator.join(row) for row in quoted))
    table = nearkin.data.load_table("csv", file)
    assert table.classes == ("x", "y")
    assert [path.name for path in table.paths] == ["a, b.png", "c; d.png"]
    assert table.columns["age"].tolist() == [1, 2]
    file.write_text(separator.join(["file", "class", "age"]) + "\n" + separator.join("abc"))
    assert f"(columns, separated by {called}s: file, class, age)" in refusal(nearkin.data.load_table, "csv", file)
    file.write_text(separator.join(["path", "label"]) + "\n" + separator.join("abc"))
    assert f"3 fields separated by {called}s" in refusal(nearkin.data.load_table, "csv", file)


def test_an_unknown_name_beside_stored_runs(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path, epochs=0)
    said = refusal(gather, ["nothing"], tmp_path)
    assert run.hash in said
    assert "choices: none" not in said
    assert "nothing is stored there" in refusal(gather, ["nothing"], tmp_path / "empty")


class MeanSquare(torch.nn.Module):
    """A loss as a researcher writes it."""

    def forward(self, embeddings, labels):
        return embeddings.pow(2).mean()


def test_a_part_is_a_class_and_no_object(tiny, tmp_path):
    """`loss=MyLoss` is its import path; of an object nothing can be stored that makes it again."""
    path = f"{MeanSquare.__module__}.MeanSquare"
    assert make_spec(tiny, {"loss": MeanSquare}) == make_spec(tiny, {"loss": path})
    assert make_spec(tiny, {"loss": nearkin.losses.Triplet}).loss.name == "triplet"
    with pytest.raises(NearkinError, match=rf"give the class, loss.name=MeanSquare, or its import path, {path}"):
        make_spec(tiny, {"loss": MeanSquare()})
