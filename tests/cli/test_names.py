"""Names are anyone's: brackets, control characters and formulas in them are shown, never obeyed."""

import csv
import io

import pytest
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import printable
from nearkin.present import Column, Table
from nearkin.progress import Screen
from nearkin.units import AGE
from tests.stores import add_run, add_study

BRACKETS = ["triplet [hard]", "[/]", "[/red]", "[bold]x", "[link=file:///etc/passwd]x[/link]", ":warning:", "\\[x]"]
OBEYED = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "a\rb", "\x08\x08", "\u202egpj.exe", "\x7f"]


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None, done.exc_info
    return done.output


@pytest.fixture
def store(tmp_path, request):
    """A study of two rows with three seeds, the second under a hostile name."""
    cells = []
    for label, loss in (("margin", "margin"), (request.param, "triplet")):
        for seed in range(3):
            name = f"{loss}{seed}".ljust(12, "0")
            add_run(tmp_path, name, {"loss": loss}, {"map_at_r": 0.3 + seed / 50, "recall@1": 0.5}, seed=seed)
            cells.append({"labels": [label], "seed": seed, "run": name})
    add_study(tmp_path, "mine", ["method"], cells)
    return tmp_path


@pytest.mark.parametrize("store", BRACKETS, indirect=True, ids=repr)
def test_brackets_are_shown(store, request):
    name = request.node.callspec.params["store"]
    assert name in call("compare", "mine", "--runs", store)


@pytest.mark.parametrize("store", OBEYED, indirect=True, ids=repr)
def test_control_characters_are_not(store):
    said = call("compare", "mine", "--runs", store)
    assert not set(said) & {"\x1b", "\x07", "\x9b", "\r", "\x08", "\u202e", "\x7f"}


@pytest.mark.parametrize("name", [*BRACKETS, *OBEYED], ids=repr)
def test_a_spec_or_an_error_with_such_a_name_breaks_no_list(name, tmp_path):
    path = add_run(tmp_path, "a" * 12, {}, {"map_at_r": 0.5})
    (path / "spec.yaml").write_text((path / "spec.yaml").read_text().replace("name: glyphs", f"name: {name!a}"))
    failed = add_run(tmp_path, "b" * 12, {}, {"map_at_r": 0.5})
    (failed / "result.json").unlink()
    (failed / "final.json").unlink()
    (failed / "error.txt").write_text(f"NearkinError: {name}\n")
    said = call("runs", "list", "--runs", tmp_path)
    assert "a" * 12 in said
    assert "b" * 12 in said


def test_tables_and_lines_are_cleaned_at_the_same_place():
    file = io.StringIO()
    screen = Screen(file=file, width=100)
    screen.print("[red]\x1b[31m")
    screen.print(Table("t", ["\x1b column"], [["\x1b cell"]], "\x1b title", ["\x1b note"]).rich())
    assert "\x1b" not in file.getvalue()
    assert "[red]" in file.getvalue()


def test_an_error_too(capsys):
    from nearkin.cli.app import fail

    with pytest.raises(SystemExit):
        fail("no run '\x1b[2J'")
    assert "\x1b" not in capsys.readouterr().err


def test_what_is_printable_stays():
    text = "Löwe ± 3 %, 猫, ‖x‖²\n\tα\u00a0β"
    assert printable(text) == text


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+SUM(A1)", "-2+3+cmd", "@import", "\t=1", "\r=1", "-"])
def test_formulas_are_text(cell, tmp_path):
    Table("t", ["=head", Column("value", unit="number")], [[cell, -1.5]], notes=["=note"]).write(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        header, row = csv.reader(file)
    assert row == [f"'{cell}", "-1.5", "'=note"]
    assert header[0] == "'=head"


@pytest.mark.parametrize(("value", "cell"), [(-1.5, "-1.5"), (-1.5e-07, "-1.5e-07"), (-1234, "-1234"), (None, "")])
def test_numbers_stay_numbers(value, cell, tmp_path):
    Table("t", ["name", Column("value", unit="number")], [["–", value]]).write(tmp_path / "t.csv")
    assert list(csv.reader(io.StringIO((tmp_path / "t.csv").read_text())))[1] == ["–", cell]


@pytest.mark.parametrize("store", ["=cmd|' /C calc'!A0"], indirect=True)
def test_compare_writes_them_so(store, tmp_path):
    call("compare", "mine", "--runs", store, "--csv", tmp_path / "out.csv")
    texts = [file.read_text() for file in tmp_path.glob("out*.csv")]
    cells = [cell for text in texts for row in csv.reader(io.StringIO(text)) for cell in row]
    assert "'=cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if cell.startswith("=")]


AGES = {-2_275_942_286: "in the future", -3: "0 s", 5: "5 s", 90: "2 min"}


@pytest.mark.parametrize("seconds", AGES)
def test_ages(seconds):
    assert AGE.text(seconds) == AGES[seconds]


def test_one_dimension_is_warned_of(tiny, tmp_path):
    warnings = []
    nearkin.train(
        tiny | {"dim": 1, "epochs": 1},
        runs=tmp_path,
        test=False,
        watch=lambda entry: warnings.append(entry.get("warning")),
    )
    assert [text for text in warnings if text and ("model.dim=1" in text or "collapsed" in text)]
