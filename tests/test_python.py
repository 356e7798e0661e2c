"""Every command is a Python call: the page about it runs, and both ways give the same numbers."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.cli.commands import COMMANDS, RUNS
from nearkin.present import Shown

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
CALLS = ("train", "test", "embed", "evaluate", "study", "compare", "analyse", "report", "published", "find_runs")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The folder in which the code of docs/python.md has run, and its names."""
    folder = tmp_path_factory.mktemp("python")
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S))
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(code, str(PAGE), "exec"), names)
    return folder, names


def said(folder, *words):
    """What a command prints for a program."""
    result = CliRunner().invoke(app, [*words, "--runs", str(folder / "runs")])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_page_runs(page):
    folder, names = page
    assert names["embeddings"].shape == (2, 16)
    assert (folder / "mine.html").stat().st_size > 10_000
    assert "map_at_r" in str(names["run"])


def test_every_command_about_runs_has_a_call():
    words = [word for word, command in COMMANDS.items() if command.panel == RUNS]
    assert set(words) <= set(CALLS)
    assert all(callable(getattr(nearkin, name)) for name in CALLS)
    assert set(CALLS) <= set(dir(nearkin))


def test_train_and_evaluate_both_ways(page):
    folder, names = page
    run = names["run"]
    assert json.loads(said(folder, "runs", "show", run.hash, "--json"))["result"]["test"] == run.result["test"]
    evaluated = json.loads(said(folder, "evaluate", run.hash, "--metrics", "map_at_r", "--json"))
    assert evaluated["metrics"]["map_at_r"] == pytest.approx(run.metrics()["map_at_r"], abs=1e-6)


def test_compare_both_ways(page, capsys):
    folder, _ = page
    told = json.loads(said(folder, "compare", "mine", "--json"))
    capsys.readouterr()
    result = nearkin.compare("mine", runs=folder / "runs")
    assert capsys.readouterr().out == ""
    assert json.loads(json.dumps(result.to_dict())) == told
    assert result.to_arrow().num_rows == len(told["tables"]["leaderboard"])


def test_a_study_both_ways(page):
    folder, names = page
    file = folder / "again.yaml"
    file.write_text(json.dumps({**names["grid"], "name": "again"}))
    said(folder, "study", str(file))  # the same runs: nothing is trained
    tree = nearkin.study({**names["grid"], "name": "again"}, runs=folder / "runs")
    with open(folder / "runs" / "again.csv") as table:
        assert len(table.read().splitlines()) == 1 + tree.to_arrow().num_rows
    assert tree.rows[0].seeds == 2


def test_find_runs_both_ways(page):
    folder, _ = page
    listed = json.loads(said(folder, "runs", "list", "--where", "loss=triplet", "--sort", "map_at_r", "--json"))
    assert [row["run"] for row in listed] == [
        run.hash for run in nearkin.find_runs(folder / "runs", where=["loss=triplet"], sort="map_at_r").runs
    ]
    both = nearkin.find_runs(folder / "runs", where={"loss": ["triplet", "contrastive"]})
    assert len(both.runs) == 2 * len(listed)


def test_published_both_ways():
    told = CliRunner().invoke(app, ["published", "thesis_t11", "--json"]).stdout
    assert json.loads(told) == json.loads(nearkin.published("thesis_t11").to_json())


def test_analyse_both_ways(page):
    folder, _ = page
    told = CliRunner().invoke(app, ["analyse", "spectrum", "mine", "--runs", str(folder / "runs"), "--json"])
    assert told.exit_code == 0, told.output
    result = nearkin.analyse("spectrum", "mine", runs=folder / "runs")
    assert json.loads(told.stdout) == json.loads(json.dumps(result.numbers))


def test_report_both_ways(page, tmp_path):
    folder, names = page
    said(folder, "report", "mine", "-o", str(tmp_path / "mine.html"), "--no-map")
    assert names["page"].path.name == "mine.html"
    titles = [
        re.findall("<h2[^>]*>(.*?)</h2>", file.read_text()) for file in (tmp_path / "mine.html", folder / "mine.html")
    ]
    assert titles[0] == titles[1] != []


def test_results_show_themselves(page):
    folder, names = page
    runs = folder / "runs"
    shown = [
        names["compared"],
        nearkin.find_runs(runs),
        nearkin.published(),
        nearkin.analyse("spectrum", "mine", runs=runs),
    ]
    for result in shown:
        assert isinstance(result, Shown)
        assert "<table" in result._repr_html_()
        assert str(result).strip()
        assert result.to_arrow().num_rows


def test_a_notebook_cell_shows_the_table(page, tmp_path):
    """`nearkin.compare("mine")` as the last line of a cell."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cell = nbformat.v4.new_code_cell('import nearkin\nnearkin.compare("mine")')
    notebook = nbformat.v4.new_notebook(cells=[cell])
    folder = {"metadata": {"path": str(page[0])}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=folder).execute()
    (output,) = [output for output in notebook.cells[0].outputs if output.output_type == "execute_result"]
    assert "<table" in output.data["text/html"]
    assert "contrastive" in output.data["text/html"]


def test_no_room_has_the_name_of_a_call():
    """Once a submodule is imported, its package has it as an attribute: a room called `report` would hide the call."""
    code = """
import importlib, inspect, pkgutil, nearkin
for module in pkgutil.walk_packages(nearkin.__path__, "nearkin."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            assert not str(error.name).startswith("nearkin"), error
import sys
names = sys.argv[1:]
assert all(inspect.isfunction(getattr(nearkin, name)) for name in names), names
print(nearkin.published("thesis_t11").tables[0].name)
"""
    done = subprocess.run([sys.executable, "-c", code, *CALLS], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "thesis_t11\n"), done.stderr
