"""The inventory: every item of the sources has a mark, and the places that it names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import Command
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.cli.commands import parser_of
from nearkin.config.catalogue import read_catalogue
from nearkin.config.spec import make_spec
from nearkin.literature.inventory import MARKS, items, parts
from nearkin.literature.tables import table

ROOT = Path(__file__).parents[2]
PLACES = [(item.id, place) for item in items() for place in item.where]
WHOLE = {"A": 46, "B": 10, "C": 6, "D": 6, "E": 17, "F": 8, "G": 11, "H": 16, "I": 12, "J": 24, "K": 5, "N": 41}
KINDS = {
    "loss": "losses",
    "miner": "miners",
    "sampler": "samplers",
    "regulariser": "regularisers",
    "method": "methods",
    "analysis": "analyses",
}
OURS = {"all", "covering", "similarity"}  # in no source


def test_every_item_is_there_once_and_in_order():
    assert [item.id for item in items()] == [f"{part}{i}" for part, n in WHOLE.items() for i in range(1, n + 1)]
    assert list(parts()) == list(WHOLE)


def test_an_item_that_does_not_work_says_why():
    for item in items():
        assert item.mark in MARKS
        assert item.missing or item.mark == "●", item.id
        assert item.where or item.mark in "○–", f"{item.id} has no place"


def exists(place):
    """Is there this file, do these words make a run, is there this command?"""
    if place.startswith("nearkin "):
        return command(place.split()[1:])
    if "=" in place:
        make_spec(place)
        return True
    return (ROOT / "src" / "nearkin" / place).is_file() or (ROOT / place).is_file()


def command(words):
    """Does the command line know these words? Of `published` the table, of `analyse` the analysis."""
    parser: Command = parser_of(words[0])
    rest = words[1:]
    if hasattr(parser, "commands") and rest:
        parser, rest = parser.commands[rest[0]], rest[1:]
    known = {option for parameter in parser.params for option in parameter.opts}
    for word in rest:
        if word.startswith("--"):
            assert word in known, word
        elif words[0] == "published":
            table(word)
        else:
            assert word in names("analysis"), word
    return True


@pytest.mark.parametrize(("id", "place"), PLACES, ids=[" ".join(pair) for pair in PLACES])
def test_places_exist(id, place):
    assert exists(place), f"{id}: {place}"


@pytest.mark.parametrize(
    "place", ["loss=contrastiv", "losses/none.py", "nearkin published thesis_t99", "nearkin anlyse"]
)
def test_a_place_that_does_not_exist_is_seen(place):
    with pytest.raises(Exception):  # noqa: B017, PT011  whatever says so first
        assert exists(place)


def test_every_ready_study_of_a_source_is_a_place():
    """Of these three; HIST and DRML have a file for each data set, too."""
    named = {place for _, place in PLACES if place.startswith("studies/")}
    folders = ("roth2020", "psomas2020", "mlrc")
    studies = {f.relative_to(ROOT).as_posix() for name in folders for f in (ROOT / "studies" / name).glob("*.yaml")}
    assert studies - named == {"studies/mlrc/glyphs.yaml"}


def names(kind):
    """What the package has of a kind."""
    return {row["name"] for row in read_catalogue().listed(KINDS[kind])}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_part_has_a_line(kind):
    """Losses, miners, samplers, regularisers, methods, analyses: the inventory names every one that a source has."""
    pattern = r"nearkin analyse (\w+)" if kind == "analysis" else rf"\b{kind}=(\w+)"
    named = {name for _, place in PLACES for name in re.findall(pattern, place)}
    assert names(kind) - named <= OURS


def test_the_page_is_current():
    done = subprocess.run(
        [sys.executable, "examples/inventory.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_command_shows_all_parts():
    done = CliRunner().invoke(app, ["published", "--inventory"])
    assert done.exit_code == 0
    assert all(f"{letter}. {heading}" in done.stdout for letter, heading in parts().items())
