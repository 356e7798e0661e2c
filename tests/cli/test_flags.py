"""The library names settings; the command line names flags, and translates in one place."""

import ast
import re
from pathlib import Path

import pytest

from nearkin.analysis.embedded import stratified
from nearkin.cli import app as cli
from nearkin.cli.commands import COMMANDS, parser_of
from nearkin.cli.flags import FLAGS, in_flags
from nearkin.errors import NearkinError
from nearkin.runs.listing import select

SOURCE = Path(cli.__file__).parents[1]
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
COMMAND = re.compile(r"(nearkin|ray|torchrun) [^`;]*")  # a whole command that the reader may type
ALLOWED = {
    "runs/environment.py": "git is called with flags of its own",
    "pages/_sprite.py": "CSS has variables of this form",
    "pages/_still.py": "the same variables",
    "config/page.py": "docs/settings.md is about the command line too",
    "literature/_experiments.py": "a part of the command that measures it",
    "pages/_analyses.py": "a part of the command that renews it",
    "pages/_fit.py": "the page shows the command that makes the same fit",
    "pages/report.py": "the page shows the command that writes it",
}


def strings(tree):
    """Every text of a module, with {} where values stand, and its line."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def named(file):
    """The flags that the texts of a file name, outside of whole commands."""
    return [
        f"{file.relative_to(SOURCE)}:{line}: {flag}"
        for line, text in strings(ast.parse(file.read_text()))
        for flag in FLAG.findall(COMMAND.sub("", text))
    ]


def test_the_library_names_no_flags():
    files = [file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] != "cli"]
    outside = [file for file in files if str(file.relative_to(SOURCE)) not in ALLOWED]
    assert [name for file in outside for name in named(file)] == []
    assert all(named(SOURCE / name) for name in ALLOWED)  # what needs no permission has none


def test_every_flag_exists():
    groups, options = [parser_of(name) for name in COMMANDS], set()
    for group in groups:
        groups += getattr(group, "commands", {}).values()
        options |= {word for parameter in group.params for word in parameter.opts}
    assert set(FLAGS.values()) <= options


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("metric=nope: choices: a", "--metric nope: choices: a"),
        ("say trust=True or set X=1", "say --trust or set X=1"),
        ("it is not there; runs=other names its store", "it is not there; --runs other names its store"),
        ("budget_mib=1: at least 2", "--budget 1: at least 2"),
        ("address=a:1: nobody answers", "--ray a:1: nobody answers"),
        ("train.batch=3, sampler.metric=1 and 'part=1'", "train.batch=3, sampler.metric=1 and 'part=1'"),
    ],
)
def test_translation(message, words):
    assert in_flags(message) == words


def said(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["nearkin", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_both_ways(tmp_path, monkeypatch, capsys):
    with pytest.raises(NearkinError, match=r"^sort=nope: "):
        select([], {}, "nope")
    line = said(monkeypatch, capsys, "runs", "list", "--sort", "nope", "--runs", tmp_path)
    assert line.startswith("nearkin: --sort nope: ")
    with pytest.raises(NearkinError, match=r"^images=0: at least 1$"):
        stratified([0, 1], 0)
