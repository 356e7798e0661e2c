"""Every part declares what tuning may try of it, inside its own bounds, and names the source where one is published."""

import inspect
from typing import ClassVar, get_args

import pytest
import torch

from nearkin.config.search import SEARCHED, declared, given_spaces, search_space, takes_whole
from nearkin.config.spec import make_spec
from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError
from nearkin.losses import NormSoftmax, Triplet
from nearkin.models.build import build_model
from nearkin.pairs import Triplets
from nearkin.registry import LOSSES, METHODS, MINERS, REGULARISERS, hyperparameters
from nearkin.runs.prepare import make_objective, parts_of
from nearkin.runs.spaces import check_spaces, value_now
from nearkin.spaces import Space

REGISTRIES = dict(zip(SEARCHED, (LOSSES, MINERS, REGULARISERS, METHODS), strict=True))
PARTS = [(part, name) for part, registry in REGISTRIES.items() for name in registry.names()]
SPACES = [(part, name, key) for part, name in PARTS for key in declared(REGISTRIES[part][name])]
NOT_SEARCHED = {  # numbers that no space is declared for, and why
    "loss.angular.npair": "only its ratio to lam matters",
    "loss.margin.nu": "a penalty that its source leaves out",
    "loss.proxy_repel.relations": "a term of our own reading, off by default",
    "miner.distance_weighted.upper": "the source's code has no limit",
    "miner.semihard.margin": "the loss's margin, which is searched",
}
DEFAULT_OUTSIDE = {  # the published grid does not have nearkin's default
    "loss.margin.loss.beta": "1.2 is a distance; the similarity form has a β of its own",
    "loss.soft_triple.delta": "0.01, between its first two steps",
    "loss.soft_triple.train.groups.loss.lr": "the base rate, 1e-3 from random weights",
}
TABLE_15 = [  # Psomas 2020: loss, symbol, key, range, step, is 0 left out
    ("multi_similarity", "margin λ", "loss.base", (0, 1), 0.1, False),
    ("multi_similarity", "scale α", "loss.alpha", (0, 100), 2, True),
    ("multi_similarity", "scale β", "loss.beta", (0, 100), 2, True),
    ("multi_similarity", "epsilon", "miner.epsilon", (0, 1), 0.1, False),
    ("soft_triple", "margin λ", "loss.delta", (0, 1), 0.1, False),
    ("soft_triple", "scale α", "loss.scale", (0, 100), 2, True),
    ("soft_triple", "weights lr", "train.groups.loss.lr", (1e-5, 1e-4), 1e-5, False),
    ("soft_triple", "gamma", "loss.gamma", (0, 100), 10, True),
    ("soft_triple", "tau", "loss.tau", (0, 1), 0.1, False),
    ("proxy_anchor", "margin λ", "loss.delta", (0, 1), 0.1, False),
    ("proxy_anchor", "scale α", "loss.alpha", (0, 100), 2, True),
]


def words_for(part, name, settings=()):
    """A run with that part, and with a loss and a miner that go with it."""
    words = {f"{part}.name": name}
    if part == "miner":
        words["loss"] = "triplet" if MINERS[name].gives is Triplets else "multi_similarity"
    if part in ("regulariser", "method"):
        words |= {"loss": "triplet", "miner": "random"}
    return words | dict(settings)


def full(part, key):
    return key if "." in key else f"{part}.{key}"


def idle_lifted(part, name, key):
    """What else must be set for a hyper-parameter to be read."""
    when = declared(REGISTRIES[part][name])[key].when
    return {f"{part}.{other}": values[0] for other, values in when.items()}


def value_of_loss(spec):
    """On a small batch: of the objective, or of a method around a small network."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(12) % 4
    torch.manual_seed(0)
    if spec.method is None:
        objective = build_objective(**parts_of(spec), num_classes=4, dim=8)
        return objective(torch.randn(12, 8, generator=generator), labels, generator)
    model = build_model(backbone="convnet", head=spec.method.cls.head, dim=8, parts=2)
    method = make_objective(spec, model, num_classes=4)
    return method(model(torch.randn(12, 3, 32, 32, generator=generator)), labels, generator)


@pytest.mark.parametrize(("part", "name", "key"), SPACES)
class TestEverySpace:
    def test_is_of_a_setting_of_the_run(self, part, name, key):
        cls = REGISTRIES[part][name]
        space = declared(cls)[key]
        own = hyperparameters(cls)
        assert key.removeprefix(f"{part}.") in own or key.startswith("train.groups.")  # a whole name: a second space
        assert set(space.when) <= set(own)
        spec = make_spec(words_for(part, name, idle_lifted(part, name, key)))
        assert search_space(spec)[full(part, key)] == space
        assert space.whole == takes_whole(spec, full(part, key))

    def test_gives_a_finite_loss_at_low_middle_and_high(self, part, name, key):
        space = declared(REGISTRIES[part][name])[key]
        for value in space.values(3):
            words = words_for(part, name, idle_lifted(part, name, key)) | {full(part, key): value}
            assert value_of_loss(make_spec(words)).isfinite(), value

    def test_is_inside_the_bounds_of_its_part(self, part, name, key):
        spec = make_spec(words_for(part, name, idle_lifted(part, name, key)))
        check_spaces(spec, {full(part, key): declared(REGISTRIES[part][name])[key]})

    def test_has_the_default_in_it(self, part, name, key):
        spec = make_spec(words_for(part, name, idle_lifted(part, name, key)))
        inside = declared(REGISTRIES[part][name])[key].contains(value_now(spec, full(part, key)))
        assert inside == (f"{part}.{name}.{key}" not in DEFAULT_OUTSIDE)

    def test_is_published_or_says_that_it_is_ours(self, part, name, key):
        space = declared(REGISTRIES[part][name])[key]
        if space.source.startswith("Psomas 2020, table 15"):
            assert (name, full(part, key)) in [(loss, there) for loss, _, there, *_ in TABLE_15]
        elif space.source.startswith("Musgrave et al. 2020"):
            assert key.startswith("train.groups.")
            assert (space.low, space.high) == (1e-6, 1)
        else:
            assert space.source == "ours"


@pytest.mark.parametrize(("part", "name"), PARTS)
def test_every_number_is_searched_or_has_a_reason(part, name):
    cls = REGISTRIES[part][name]
    numbers = [k for k, p in hyperparameters(cls).items() if float in (p.annotation, *get_args(p.annotation))]
    without = {f"{part}.{name}.{key}" for key in numbers if key not in declared(cls)}
    assert without == {key for key in NOT_SEARCHED if key.startswith(f"{part}.{name}.")}


@pytest.mark.parametrize("name", LOSSES.names())
def test_a_loss_with_parameters_searches_their_rates(name):
    groups = build_objective(loss=(name, {}), num_classes=4, dim=8).parameter_groups()
    rates = {key for key in declared(LOSSES[name]) if key.startswith("train.groups.")}
    assert rates == {f"train.groups.{group['name']}.lr" for group in groups}


@pytest.mark.parametrize(("loss", "symbol", "key", "ends", "step", "open_below"), TABLE_15)
def test_table_15(loss, symbol, key, ends, step, open_below):
    spec = make_spec({"loss": loss} | ({"miner": "multi_similarity"} if loss == "multi_similarity" else {}))
    space = search_space(spec)[key]
    low, high = ends
    wanted = [low + i * step for i in range(round((high - low) / step) + 1)][1 if open_below else 0 :]
    if symbol == "gamma":  # the thesis multiplies by it, nearkin divides
        wanted = [1 / factor for factor in wanted]
        assert "factor" in space.source
    assert space.values(999) == pytest.approx(wanted, abs=1e-12)
    assert space.source.startswith("Psomas 2020, table 15")


class TestOfASpec:
    def test_all_parts_with_their_dots(self):
        words = {"loss": "margin", "miner": "distance_weighted", "regulariser": "rho", "method": "drml"}
        keys = [
            "loss.margin",
            "loss.beta",
            "train.groups.loss.lr",
            "miner.cutoff",
            "regulariser.p_switch",
            "method.w_rep",
            "method.w_rec",
        ]
        spaces = search_space(make_spec(words))
        assert list(spaces) == keys
        check_spaces(make_spec(words), spaces)

    @pytest.mark.parametrize(
        ("words", "keys"),
        [
            ({"loss": "contrastive"}, {"loss.pos_margin", "loss.neg_margin"}),
            ({"loss": "contrastive", "loss.form": "similarity"}, {"loss.threshold"}),
            ({"loss": "margin", "loss.learn_beta": False}, {"loss.margin", "loss.beta"}),
            ({"loss": "npair", "loss.unit": True}, set()),
            (
                {"loss": "hist", "loss.graph": "none", "loss.distribution_loss": False},
                {"loss.lam", "train.groups.distributions.lr", "train.groups.hgnn.lr"},
            ),
            ({"loss": "softmax"}, {"train.groups.loss.lr"}),
        ],
    )
    def test_idle_hyperparameters_are_left_out(self, words, keys):
        assert set(search_space(make_spec(words))) == keys

    def test_a_class_from_outside_may_declare_spaces(self):
        spec = make_spec({"loss": f"{__name__}.Outside"})
        assert search_space(spec) == {"loss.margin": Space(0.1, 0.3), "train.lr": Space(1e-5, 1e-3, log=True)}
        assert "train.groups.loss.lr" in search_space(make_spec({"loss": f"{__name__}.OutsideProxies"}))

    def test_something_else_of_that_name_is_no_declaration(self):
        assert declared(WithAMethod) == {}

    def test_what_is_no_space_is_refused(self):
        with pytest.raises(NearkinError, match=r"Wrong\.search\['margin'\] is \(0, 1\): must be a space"):
            declared(Wrong)


class Outside(Triplet):
    """A loss that was never registered."""

    search: ClassVar = {"margin": Space(0.1, 0.3), "train.lr": Space(1e-5, 1e-3, log=True)}


class OutsideProxies(NormSoftmax):
    """Another one, with what its base declares."""


class WithAMethod:
    """A class of another library."""

    def search(self):
        """Something else."""


class Wrong:
    """A class that declares no space."""

    search: ClassVar = {"margin": (0, 1)}


class Picky(Triplet):
    """A loss that is strict in its own way."""

    def __init__(self, *, margin: float = 0.2):
        assert margin < 0.5, "no wide margins"
        super().__init__(margin=margin)


class TestGiven:
    def test_whole_numbers_by_the_setting_and_short_forms(self):
        given = {
            "dim": {"low": 64, "high": 512, "log": True},
            "loss.bins": {"low": 5, "high": 20},
            "lr": {"low": "1e-5", "high": 1, "log": True},
            "train.groups.head.lr": {"low": 1, "high": 2},
            "miner": ["hard", "random"],
            "miner.epsilon": {"low": 1, "high": 2},
        }
        spec = make_spec({"loss": "fastap"})
        assert given_spaces(spec, given) == {
            "model.dim": Space(64, 512, log=True, source="given", whole=True),
            "loss.bins": Space(5, 20, source="given", whole=True),
            "train.lr": Space(1e-5, 1.0, log=True, source="given"),
            "train.groups.head.lr": Space(1.0, 2.0, source="given"),
            "miner.name": Space(options=["hard", "random"], source="given"),
            "miner.epsilon": Space(1.0, 2.0, source="given"),
        }

    @pytest.mark.parametrize(
        ("words", "key", "space", "said"),
        [
            (
                {"loss": "multi_similarity"},
                "loss.alpha",
                Space(0, 100, 2),
                "search space of loss.alpha, 0 to 100 in steps of 2: alpha=0.0: must be above 0",
            ),
            ({"loss": "angular"}, "loss.alpha", Space(30, 90), "loss.alpha, 30 to 90: alpha=90.0: an angle"),
            (
                {"loss": "fastap"},
                "loss.bins",
                Space(0, 5, whole=True),
                "loss.bins, whole numbers 0 to 5: bins=0: must be at least 1",
            ),
            ({"loss": "triplet"}, "loss.magrin", Space(0, 1), "unknown key 'magrin' of loss 'triplet': did you mean"),
            ({"loss": "triplet"}, "train.groups.loss.lr", Space(1e-6, 1, log=True), "train.groups.loss: no such group"),
            ({"loss": "triplet"}, "train.lr", Space(-1, 1), "train.lr, -1 to 1: train.lr=-1.0"),
            (
                {"loss": "triplet", "miner": "hard"},
                "miner.name",
                Space(options=["hard", "multi_similarity"]),
                "one of hard, multi_similarity: miner MultiSimilarity gives PairMasks",
            ),
            ({"loss": "triplet", "method": "drml"}, "method.w_rep", Space(-1, 1), "w_rep=-1.0: must be at least 0"),
            ({"loss": "triplet", "method": "drml"}, "train.groups.loss.lr", Space(1e-6, 1, log=True), "no such group"),
            (
                {"loss": "triplet", "miner": "distance_weighted", "miner.upper": 0.8},
                "miner.cutoff",
                Space(0.1, 1),
                "miner.cutoff, 0.1 to 1: upper=0.8: must be above 1",
            ),
            ({"loss": f"{__name__}.Picky"}, "loss.margin", Space(0.1, 0.9), "loss.margin, 0.1 to 0.9: no wide margins"),
        ],
    )
    def test_outside_the_bounds_is_refused_by_key_space_and_reason(self, words, key, space, said):
        with pytest.raises(NearkinError) as error:
            check_spaces(make_spec(words), {key: space})
        assert said in str(error.value)
        assert f"search space of {key}, {space}: " in str(error.value)

    def test_checking_draws_nothing_from_the_random_state(self):
        before = torch.get_rng_state()
        for words in ({"loss": "proxy_anchor"}, {"loss": "margin", "method": "drml"}):
            check_spaces(make_spec(words), search_space(make_spec(words)))
            value_now(make_spec(words), "train.groups.loss.lr")
        assert torch.equal(torch.get_rng_state(), before)


class TestValueNow:
    @pytest.mark.parametrize(
        ("words", "key", "value"),
        [
            ({"loss": "margin"}, "loss.beta", 1.2),
            ({"loss": "margin", "loss.beta": 0.6}, "loss.beta", 0.6),
            ({"loss": "margin", "lr": 1e-4}, "train.groups.loss.lr", 5e-3),
            ({"loss": "margin", "train.groups.loss.lr": 0.5}, "train.groups.loss.lr", 0.5),
            ({"loss": "hist"}, "train.groups.hgnn.lr", 5e-4),
            ({"lr": 1e-4}, "train.groups.head.lr", 1e-4),
            ({}, "train.lr", 1e-3),
            ({}, "model.dim", 128),
        ],
    )
    def test_given_or_by_default(self, words, key, value):
        assert value_now(make_spec(words), key) == pytest.approx(value)

    def test_an_unknown_key(self):
        with pytest.raises(NearkinError, match=r"unknown key 'loss\.alhpa'"):
            value_now(make_spec({}), "loss.alhpa")


def test_a_declaration_is_explained_where_it_is_inherited_from():
    for registry in REGISTRIES.values():
        base = next(c for c in inspect.getmro(registry[registry.names()[0]]) if "search" in vars(c) and not c.search)
        assert "`search` declares what tuning may try" in inspect.getdoc(base).replace("\n", " ")
