"""Every ready study is the published table that it names, but for what its file lists under `differs:`."""

import importlib.util

import pytest
import yaml
from ready import FOLDER, name, real
from twins import has_untrained, unlisted

from nearkin.errors import NearkinError
from nearkin.studies.grid import read_study
from nearkin.studies.twin import twin_words

FILES = sorted(file for file in FOLDER.rglob("*.yaml") if "twin" in yaml.safe_load(file.read_text()))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_it_is_its_twin_but_for_what_it_lists(file):
    content = yaml.safe_load(file.read_text())
    rows = {} if has_untrained(content["twin"]) else {"baselines": "none"}  # they take most of the time
    wrong = "\n".join(f"{file.relative_to(FOLDER.parent)}: {words}" for words in unlisted(real(content | rows)))
    if wrong:
        pytest.fail(wrong, pytrace=False)


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("program", FOLDER.parent / "examples" / "twins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestProgram:
    def test_the_page_lists_what_the_files_say(self, program):
        text = program.PAGE.read_text()
        assert program.rendered(text) == text, "docs/fidelity.md: make differences"
        assert program.LIST.search(text)

    def test_every_twin_is_run_in_small_with_one_seed(self, program):
        assert program.files() == FILES
        for file in FILES:
            content = program.small(file)
            study = read_study(content | {"baselines": "none"}, program.words_of(content))
            assert {cell.seed for cell in study.cells} == {0}
            assert {cell.spec.data.name for cell in study.cells} == {"glyphs"}
            assert {cell.spec.data.params["per_class"] for cell in study.cells} <= {4, 6}
            assert {cell.spec.train.epochs for cell in study.cells} <= {0, 1}

    def test_some_of_them(self, program):
        assert [name(file) for file in program.files(["hist/dim"])] == ["hist/dim64", "hist/dims"]


def altered(change, file="roth2020/cub"):
    """What is wrong with a study after a change to its file."""
    content = yaml.safe_load((FOLDER / f"{file}.yaml").read_text())
    change(content)
    return [words for words in unlisted(real(content | {"baselines": "none"})) if "row Imagenet" not in words]


def set_beta(content, row="Margin (D, beta = 0.6)"):
    content["axes"]["method"][row]["loss.beta"] = 0.7


class TestWhatIsAlteredIsNamed:
    def test_a_beta(self):
        assert altered(set_beta) == ["roth_t4, row Margin (D, beta = 0.6): loss.beta: 0.7, published: 0.6"]

    def test_a_beta_that_is_listed_with_its_reason(self):
        def change(content):
            set_beta(content)
            content["differs"] = {"Margin (D, beta = 0.6): loss.beta": "to see what happens"}

        assert not altered(change)

    def test_what_is_listed_and_does_not_differ(self):
        def change(content):
            content["differs"] = {"loss.beta": "why", "the size of crops": "a note in words"}

        assert altered(change) == ["differs: loss.beta: nothing differs there"]

    def test_a_setting_of_the_paper(self):
        found = altered(lambda content: content["real"]["base"].update(lr=1e-4))
        assert "roth_t4, row ArcFace: train.lr: 0.0001, recipe=roth2020: 1e-05" in found
        assert "roth_t4, row Triplet (D): train.lr: 0.0001, training: 1e-05" in found

    def test_another_loss_under_the_name_of_a_row(self):
        (found,) = altered(lambda content: content["axes"]["method"].update({"NPair": {"loss": "angular"}}))
        assert found == "roth_t4, row NPair: loss.name: 'angular', published: 'npair'"

    def test_a_row(self):
        def change(content):
            content["axes"]["method"]["Tripel (R)"] = content["axes"]["method"].pop("Triplet (R)")

        assert altered(change) == [
            "roth_t4: row Triplet (R): not in the study",
            "roth_t4: row Tripel (R): on cub, in no table",
        ]

    def test_a_column(self):
        (found,) = altered(lambda content: content["metrics"].remove("recall@2"))
        assert found.startswith("roth_t4: column R@2: no recall@2 among validation map_at_r, recall@1, f1")

    def test_seeds(self):
        found = altered(lambda content: content["real"].update(seeds=[0, 1]))
        assert len(found) == 23
        assert "roth_t4, row Angular: seeds: 2, published 5" in found

    def test_the_reading(self):
        found = altered(lambda content: content["real"].update(readings=["chosen"]))
        assert found == ["roth_t4: reading test_best_each: published; here chosen"]

    def test_the_size(self):
        found = altered(lambda content: content["real"]["base"].update(dim=64))
        assert "roth_t4, row Angular: model.dim: 64, published: 128" in found


@pytest.mark.parametrize(
    ("twin", "words"),
    [
        ("roth_t44", "no published table"),
        ("roth2021 figure 8", "did you mean roth2020"),
        ({"table": 4}, "must be a list of published tables"),
    ],
)
def test_a_twin_that_there_is_not(twin, words):
    with pytest.raises(NearkinError, match=words):
        read_study({"name": "one", "twin": twin, "base": {"dataset": "glyphs"}})


def test_a_difference_needs_its_reason():
    with pytest.raises(NearkinError, match="a mapping from what differs to why"):
        read_study({"name": "one", "twin": "roth_t4", "differs": {"seeds": None}, "base": {"dataset": "glyphs"}})


def test_a_twin_in_words():
    names = ["thesis_t6", "thesis_t11", "roth2020 figure 8", "roth_t4"]
    assert twin_words(names) == "Psomas 2020, tables 6, 11; Roth et al. 2020, figure 8 and table 4"
