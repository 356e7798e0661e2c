"""Specs: typed, frozen, from words, trees and YAML; errors that help; hashes that last."""

import pytest
import yaml

from nearkin.config.parse import parse_words
from nearkin.config.spec import ALIASES, RunSpec, make_spec, read_spec
from nearkin.errors import NearkinError


def test_words_trees_and_yaml_agree(tmp_path):
    words = make_spec(parse_words(["loss=contrastive", "loss.neg_margin=0.5", "dim=64", "lr=1e-3", "seed=3"]))
    tree = make_spec(
        {"loss": {"name": "contrastive", "neg_margin": 0.5}, "model": {"dim": 64}, "train": {"lr": 0.001, "seed": 3}}
    )
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(tree.tree()))
    assert words == tree == read_spec(tmp_path / "run.yaml")
    assert words.loss.params == {"neg_margin": 0.5}
    assert words.train.lr == 1e-3


def test_every_alias_leads_somewhere():
    for target in ALIASES.values():
        part, key = target.split(".")
        assert part in RunSpec.model_fields
        assert key == "name" or key in type(getattr(RunSpec(), part)).model_fields


def test_a_spec_is_frozen():
    with pytest.raises(Exception, match="frozen"):
        RunSpec().train.lr = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"los": "x"}, "unknown key 'los': did you mean loss"),
        ({"loss": "contrastve"}, "unknown loss 'contrastve': did you mean contrastive"),
        ({"loss.alhpa": 3}, "unknown key 'alhpa' of loss 'proxy_anchor': did you mean alpha?"),
        ({"train.lrr": 3}, "unknown key 'train.lrr': did you mean lr?"),
        ({"train.groups.loss.l": 3}, "choices: eps, lr, weight_decay"),
        ({"dim": 0}, "model.dim=0: input should be greater than or equal to 1"),
        ({"train.optimiser": "adm"}, "input should be 'sgd', 'rmsprop', 'adam' or 'adamw'"),
        ({"loss.alpha": "x"}, "alpha='x': input should be a valid number"),
        ({"backbone": "convnte"}, "did you mean convnet?"),
        ({"dataset": "glyps"}, "did you mean glyphs?"),
        ({"miner": "multi_similarity", "miner.eps": 2}, "did you mean epsilon?"),
        ({"sampler": "balancd"}, "did you mean balanced?"),
        ({"loss": "no_such_package.Loss"}, "cannot be imported"),
    ],
)
def test_errors_name_value_and_choices(words, said):
    with pytest.raises(NearkinError) as caught:
        make_spec(words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_words_must_be_pairs():
    with pytest.raises(NearkinError, match="'margin' is not key=value"):
        parse_words(["margin"])


def test_numbers_in_scientific_notation_are_numbers():
    assert parse_words(["lr=1e-3", "dim=64", "loss=triplet", "miner=none", "train.amp=true"]) == {
        "lr": 1e-3,
        "dim": 64,
        "loss": "triplet",
        "miner": "none",
        "train.amp": True,
    }


def test_miner_none_takes_a_base_miner_away():
    base = {"loss": "triplet", "miner": "random"}
    assert make_spec(base).miner is not None
    assert make_spec(base, {"miner": "none"}).miner is None


class TestHash:
    def test_covers_settings_data_and_split(self):
        base = make_spec({"loss": "triplet"})
        hashes = {
            base.hash("d", "s"),
            base.hash("e", "s"),
            base.hash("d", "t"),
            make_spec({"loss": "triplet", "loss.margin": 0.3}).hash("d", "s"),
            make_spec({"loss": "triplet", "seed": 1}).hash("d", "s"),
        }
        assert len(hashes) == 5

    def test_a_field_at_its_default_drops_out(self):
        """So a field or hyper-parameter added later orphans no stored run."""
        assert make_spec({"loss": "triplet", "loss.margin": 0.2}).changes() == {"loss.name": "triplet"}
        assert make_spec({}).changes() == {}

    def test_does_not_cover_where_it_runs(self):
        here = make_spec({"root": "/a", "train.device": "cpu"})
        there = make_spec({"root": "/b", "train.device": "auto"})
        assert here.hash("d", "s") == there.hash("d", "s")

    def test_is_stable(self):
        """Runs are found by it: a change of this value makes every user's stored runs invisible."""
        spec = make_spec({"loss": "triplet", "loss.margin": 0.3, "dim": 64, "train.groups.loss.lr": 0.1})
        assert spec.hash("data", "split") == STABLE

    def test_a_new_meaning_of_a_part_changes_it(self, monkeypatch):
        spec = make_spec({"loss": "triplet"})
        before = spec.hash("d", "s")
        monkeypatch.setattr(spec.loss.cls, "version", 2)
        assert spec.hash("d", "s") != before


STABLE = "5b9a8517e829"
