"""A loss by its import path: looking at runs does not import it, and its kind is `own`."""

import json
import sys

import yaml
from stores import add_run
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.verdicts import kinds


def test_its_kind_is_own_and_it_takes_no_side(tmp_path):
    for i, loss in enumerate(("triplet", "proxy_anchor", "somewhere.losses.Mine")):
        for seed in range(2):
            metrics = {"map_at_r": 0.3 + 0.1 * i + 0.01 * seed, "recall@1": 0.5}
            path = add_run(tmp_path, f"{i}{seed}" * 6, {"loss": "margin"}, metrics, seed=seed, queries=10)
            head = yaml.safe_load((path / "spec.yaml").read_text())
            head["spec"]["loss"] = {"name": loss}
            (path / "spec.yaml").write_text(yaml.safe_dump(head))
    done = CliRunner().invoke(app, ["compare", str(tmp_path), "--json", "--runs", str(tmp_path)])
    assert done.exit_code == 0, done.exception
    board = json.loads(done.output)["tables"]["leaderboard"]
    assert {row["method"]: row["kind"] for row in board} == {
        "triplet": "ranking",
        "proxy_anchor": "classification",
        "somewhere.losses.Mine": "own",
    }
    _, ranking, classification = kinds(compare(gather([str(tmp_path)], tmp_path))[0])
    assert (ranking, classification) == (["triplet"], ["proxy_anchor"])
    figures = ["--figures", str(tmp_path / "figures")]
    for words in (
        ["compare", *figures],
        ["compare", "--ranks"],
        ["report", "-o", str(tmp_path / "page.html"), "--no-map"],
    ):
        done = CliRunner().invoke(app, [words[0], str(tmp_path), *words[1:], "--runs", str(tmp_path)])
        assert done.exit_code == 0, (words, done.exception)
    assert "somewhere" not in sys.modules
