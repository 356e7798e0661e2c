"""`import nearkin` and commands that only look something up import nothing heavy: they are there at once."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from stores import add_run

import nearkin
from nearkin.cli.commands import COMMANDS
from nearkin.registry import ALL_REGISTRIES
from nearkin.runs.sums import Sums, resealed, write_sums

HEAVY = ("torch", "scipy", "numpy", "pyarrow", "matplotlib", "plotly", "pandas", "PIL", "sklearn", "optuna", "ray")
IMPORTED = "print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
COMMAND = """
import sys
sys.argv[0] = "nearkin"
from nearkin.cli.app import main
try:
    main()
except SystemExit as end:
    print("exit code", end.code or 0, file=sys.stderr)
"""


def run(program, *words, **variables):
    """What a program printed, what it said at its end, and which heavy packages it has imported."""
    program = f"{program}\nimport sys\n{IMPORTED.format(HEAVY=HEAVY)}"
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *said, heavy = done.stderr.split("\n")[:-1]
    return done.stdout, said[-1] if said else "", heavy.split()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two stored runs, one of them without checksums."""
    root = tmp_path_factory.mktemp("store") / "runs"
    for seed in range(2):
        path = add_run(root, f"{seed:012x}", {"loss": "margin"}, {"map_at_r": 0.4, "recall@1": 0.5}, seed=seed)
    write_sums(resealed(path, Sums()), path)
    return root


class TestImport:
    def test_brings_nothing_heavy(self):
        names = "import nearkin\nassert 'nearkin.losses' not in sys.modules\nprint(*dir(nearkin))"
        printed, _, heavy = run(f"import sys\n{names}")
        assert "train" in printed.split()
        assert heavy == []

    def test_nor_do_the_registries(self):
        assert run("import nearkin.registry\nprint(nearkin.registry.LOSSES.plural)") == ("losses\n", "", [])

    def test_every_name_is_known_to_all_who_ask(self):
        """The table, `__all__`, `dir` and the imports that type checkers see."""
        tree = ast.parse(Path(nearkin.__file__).read_text())
        checked = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
        imported = {alias.name: node.module for node in checked.body for alias in node.names}
        places = {
            name: place.partition(":")[0] if ":" in place else place.rpartition(".")[0]
            for name, place in nearkin._PLACES.items()
        }
        assert imported == places
        assert list(places) == nearkin.__all__ == dir(nearkin)

    @pytest.mark.parametrize("name", nearkin.__all__)
    def test_every_name_is_there(self, name):
        value = getattr(nearkin, name)
        module = value.__name__ if inspect.ismodule(value) else f"{value.__module__}:{value.__name__}"
        assert module == nearkin._PLACES[name]
        assert vars(nearkin)[name] is value

    def test_a_module_is_a_name_too(self):
        assert run("import nearkin\nprint(nearkin.pairs.Pairs.__name__)")[0] == "Pairs\n"

    def test_another_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="module 'nearkin' has no attribute 'trian'"):
            nearkin.trian  # noqa: B018


class TestRegistry:
    @pytest.mark.parametrize("registry", ALL_REGISTRIES, ids=lambda registry: registry.plural)
    def test_its_room_is_imported_at_the_first_look_up(self, registry):
        assert registry.names()
        assert registry.room in sys.modules
        assert registry.title.lower().replace(" ", "") == registry.plural

    def test_a_name_of_nearkins_own_is_taken_before_its_room_is_imported(self):
        program = """
        from nearkin.registry import LOSSES
        try:
            @LOSSES.register("triplet")
            class Mine: ...
        except ValueError as error:
            print(error)
        """
        printed, _, _ = run(inspect.cleandoc(program))
        assert printed.startswith("loss 'triplet' is already registered by nearkin.losses.triplet.Triplet")


class TestCommands:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["--help"], "Runs and comparisons"),
            (["--version"], f"nearkin {nearkin.__version__}"),
            (["list", "losses"], "multi_similarity"),
            (["list", "recipes", "--json"], "psomas2020"),
            (["explain", "multi_similarity"], "loss multi_similarity"),
            (["explain", "train.lr", "--json"], '"train.lr"'),
            (["published"], "thesis_t6a"),
            (["published", "thesis_t11"], "misprint"),
            (["published", "--claims"], "claims in their own tables"),
            (["runs", "list", "--runs", "RUNS", "--where", "loss=margin", "--sort", "map_at_r"], "000000000001"),
            (["runs", "list", "--runs", "RUNS", "--json"], '"hash": "000000000001"'),
            (["runs", "--help"], "verify"),
            (["cache", "list"], "can be made again"),
        ],
        ids=lambda words: " ".join(words) if isinstance(words, list) else "",
    )
    def test_bring_nothing_heavy(self, words, expected, runs):
        words = [str(runs) if word == "RUNS" else word for word in words]
        printed, said, heavy = run(COMMAND, *words, COLUMNS="200")
        assert expected in printed
        assert (said, heavy) == ("exit code 0", [])

    @pytest.mark.parametrize("words", [["lst"], ["list", "nothing"], ["explain", "nothing"], ["published", "nothing"]])
    def test_nor_do_errors(self, words):
        assert run(COMMAND, *words) == ("", "exit code 2", [])

    def test_without_words_the_help_is_printed(self):
        printed, said, heavy = run(COMMAND)
        assert "Usage: nearkin" in printed
        assert (said, heavy) == ("exit code 2", [])

    @pytest.mark.parametrize(("typed", "expected"), [("nearkin ", "explain"), ("nearkin runs ", "verify")])
    def test_completion(self, typed, expected):
        place = str(typed.count(" "))
        printed, _, heavy = run(COMMAND, _NEARKIN_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=place)
        assert expected in printed.split()
        assert heavy == []

    @pytest.mark.parametrize("word", COMMANDS)
    def test_every_line_of_help_is_that_of_its_command(self, word):
        part = COMMANDS[word].load()
        told = part.info.help if isinstance(part, typer.Typer) else inspect.getdoc(part)
        assert COMMANDS[word].about == " ".join(told.split("\n\n")[0].split())
