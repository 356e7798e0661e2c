"""YAML that may be anyone's: bounded, and refused in one line."""

import time

import pytest
import yaml
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.config.load_yaml import DEEPEST, LARGEST, load_yaml
from nearkin.config.parse import parse_words, read_yaml
from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from tests.stores import add_run

LISTS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
MAPPINGS = "a0: &a0 {x: 1, y: 1}\n" + "".join(
    f"a{i}: &a{i} {{{', '.join(f'{key}: *a{i - 1}' for key in 'bcdefghij')}}}\n" for i in range(1, 12)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
TOO_MUCH = {
    "lists of aliases": LISTS,
    "mappings of aliases": MAPPINGS,
    "merged aliases": MERGED,
    "an alias inside itself": "a: &a [*a]",
    "brackets": "[" * 200_000 + "]" * 200_000,  # libyaml alone ends the process
    "braces": "{a: " * 5_000 + "1" + "}" * 5_000,
    "dashes": "- " * 5_000 + "a",
    "questions": "? " * 5_000 + "a",
    "indentation": "\n".join(" " * i + "a:" for i in range(1_000)),
    "length": "a: " + "x" * LARGEST,
    "a thirteenth month": "a: 2020-13-01",
    "a number of 5,000 digits": "a: " + "9" * 5_000,
    "not YAML": "a: [",
    "an object": "a: !!python/object/apply:os.system [true]",
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_refused_in_one_line_and_no_time(text, tmp_path):
    began = time.monotonic()
    with pytest.raises(NearkinError) as error:
        load_yaml(text)
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(NearkinError, match=r"run\.yaml"):
        read_yaml(tmp_path / "run.yaml")
    assert "\n" not in str(error.value)
    assert time.monotonic() - began < 1


def test_one_such_run_does_not_hide_the_others(tmp_path):
    add_run(tmp_path, "a" * 12, {}, {"map_at_r": 0.5})
    for i, text in enumerate(TOO_MUCH.values()):
        (tmp_path / f"{i:012}").mkdir()
        (tmp_path / f"{i:012}" / "spec.yaml").write_text(text)
    done = CliRunner().invoke(app, ["runs", "list", "--runs", str(tmp_path)])
    assert done.exit_code == 0
    assert "a" * 12 in done.output
    assert done.output.count("damaged") == len(TOO_MUCH)
    assert len(Store(tmp_path).runs()) == 1 + len(TOO_MUCH)


def test_aliases_in_reason_are_read():
    text = "base: &base {loss: margin, dim: 64}\none: *base\ntwo:\n  <<: *base\n  dim: 128\n"
    assert load_yaml(text) == yaml.safe_load(text)


def test_depth_in_reason_is_read():
    deep = "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    assert load_yaml(deep + " " * 300) == yaml.safe_load(deep)


def test_a_word_that_is_no_yaml_is_a_text():
    assert parse_words(["data.root=[" + "[" * 5_000])["data.root"].startswith("[[")
    assert parse_words(["note=2020-13-01"])["note"] == "2020-13-01"
