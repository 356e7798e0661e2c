"""Every claim that a study of one's own can test is decided by its twin under studies/, both ways.

The runs are made up: one row for every cell of the real study, with as many seeds and folds as its file says, and
values of which the claim is true, or false. All claims of the page are decided together, as `nearkin compare --claims`
does.
"""

import zlib
from functools import lru_cache

import numpy as np
import pytest
import yaml
from ready import FOLDER, real

from nearkin.config.parse import flatten
from nearkin.evaluation.metrics.base import EPOCH
from nearkin.literature.claims import claim, claims
from nearkin.literature.decisions import FAILS, HOLDS, decide_together
from nearkin.literature.matching import StudyRow
from nearkin.registry import LOSSES
from nearkin.runs.defaults import resolve
from nearkin.statistics.unit import Key, Place, Row

SETS = ("cub", "cars196", "sop")
LOSS, NET, DIM, DATA = "loss.name", "model.backbone", "model.dim", "data.name"
ORDER = [
    "proxy_anchor",
    "soft_triple",
    "multi_similarity",
    "contrastive",
    "lifted_similarity",
    "margin",
    "arcface",
    "proxy_nca",
    "triplet",
    "npair",
]


def on(file, *sets):
    return [f"{file} {data}" for data in sets]


TOURNAMENT, CARS = ["psomas2020/tournament"], ["psomas2020/cars196"]
ROTH, SAMPLERS = ["roth2020/cub", "roth2020/cars196", "roth2020/sop"], "roth2020/samplers"
SAMPLERS_SOP = "roth2020/samplers_sop"
MLRC, DRML = ["mlrc/cub", "mlrc/cars196"], on("drml/table", "cub", "cars196")


def ahead(lead, **wanted):
    """Rows with these settings lie `lead` above the others. `loss__name` stands for loss.name."""
    settings = {key.replace("__", "."): value for key, value in wanted.items()}
    return lambda spec, metric: 0.5 + lead * all(spec.get(key) == value for key, value in settings.items())


def behind(lead, **wanted):
    return ahead(-lead, **wanted)


def in_order(order):
    return lambda spec, metric: 0.6 - 0.02 * order.index(spec[LOSS]) if spec[LOSS] in order else 0.3


def by(key, values):
    return lambda spec, metric: values[spec[key]]


def ranked(small, large):
    """ArcFace at these ranks at 64 and at 1024 dimensions."""

    def level(spec, metric):
        order = [loss for loss in ORDER if loss != "arcface"]
        order.insert((large if spec[DIM] == 1024 else small) - 1, "arcface")
        return in_order(order)(spec, metric)

    return level


def plain(spec):
    """HIST as published, with all its parts."""
    return spec[LOSS] == "hist" and spec["loss.graph"] == "soft" and spec["loss.distribution_loss"]


def epochs(proxies, pairs):
    """At which epoch losses with proxies were best, and losses on pairs."""
    return lambda spec, metric: proxies if LOSSES[spec[LOSS]].has_proxies else pairs


def graphs(soft, positives, baseline):
    return lambda spec, metric: {"soft": soft, "positives": positives, "none": baseline}.get(spec["loss.graph"], 0.4)


def mixup(recall, rho):
    def level(spec, metric):
        return 0.5 + (rho if metric == "train.rho" else recall) * (spec.get("regulariser.name") == "mixup")

    return level


def correlated(sign):
    losses = ["contrastive", "margin", "triplet", "multi_similarity", "arcface", "npair", "norm_softmax"]

    def level(spec, metric):
        place = losses.index(spec[LOSS]) if spec[LOSS] in losses else 3
        return 0.4 + 0.02 * place if metric == "recall@1" else 0.5 + sign * 0.03 * place

    return level


def drml(lead):
    return lambda spec, metric: 0.5 + lead * (spec.get("method.name") == "drml")


# claim -> the studies that test it, values of which it is true, values of which it is false
TWINS = {
    "psomas_proxy_anchor_wins": (TOURNAMENT, ahead(0.05, loss__name="proxy_anchor"), ahead(0.05, loss__name="margin")),
    "psomas_tournament_order": (TOURNAMENT, in_order(ORDER), in_order(["npair", *ORDER[:-1]])),
    "psomas_npair_last": (TOURNAMENT, behind(0.05, loss__name="npair"), behind(0.05, loss__name="margin")),
    "psomas_soft_triple_beats_pa_cub_bn": (
        TOURNAMENT,
        lambda spec, metric: 0.5 + 0.05 * (spec[LOSS] == "soft_triple" and spec[DIM] == 512 and metric == "recall@8"),
        behind(0.05, loss__name="soft_triple"),
    ),
    "psomas_proxy_losses_converge_faster": (TOURNAMENT, epochs(proxies=12, pairs=30), epochs(proxies=30, pairs=12)),
    "psomas_margin_lifted_below_3": (TOURNAMENT, ahead(0.015, loss__name="margin"), ahead(0.2, loss__name="margin")),
    "psomas_margin_npair_below_4": (TOURNAMENT, ahead(0.02, loss__name="margin"), ahead(0.05, loss__name="margin")),
    "psomas_ms_over_pa_cars_512": (CARS, ahead(0.02, loss__name="multi_similarity"), ahead(0, loss__name="triplet")),
    "psomas_ms_over_pa_cars_1024": (CARS, ahead(0.02, loss__name="multi_similarity"), ahead(0, loss__name="triplet")),
    "psomas_googlenet_below_bn_inception": (
        TOURNAMENT,
        behind(0.035, model__backbone="googlenet"),
        behind(0.05, model__backbone="googlenet"),
    ),
    "psomas_googlenet_below_resnet50": (
        TOURNAMENT,
        behind(0.05, model__backbone="googlenet"),
        behind(0.06, model__backbone="googlenet"),
    ),
    "psomas_bn_inception_below_resnet50": (
        TOURNAMENT,
        ahead(0.01, model__backbone="resnet50"),
        lambda spec, metric: 0.5 + 0.01 * (spec[NET] == "resnet50") * (1 if spec[DIM] == 64 else -1),
    ),
    "psomas_size_gain_saturates": (
        TOURNAMENT,
        by(DIM, {64: 0.4, 128: 0.45, 512: 0.5, 1024: 0.51}),
        by(DIM, {64: 0.4, 128: 0.45, 512: 0.46, 1024: 0.51}),
    ),
    "psomas_arcface_third_cars_1024": (CARS, ranked(8, 3), ranked(8, 6)),
    "psomas_split_90_10": (
        ["psomas2020/validation"],
        ahead(0.02, protocol__share=0.1),
        ahead(0.02, protocol__share=0.05),
    ),
    "psomas_fixed_val_costs_pa": (
        ["psomas2020/validation"],
        ahead(0.015, protocol__name="standard"),
        ahead(0.03, protocol__name="standard"),
    ),
    "roth_rho_improves_all": (
        ROTH,
        ahead(0.02, regulariser__name="rho"),
        lambda spec, metric: (
            0.5
            + (-0.02 if (spec[LOSS], spec[DATA]) == ("triplet", "sop") else 0.02)
            * (spec.get("regulariser.name") == "rho")
        ),
    ),
    "roth_rho_contrastive_cars": (
        ["roth2020/cars196"],
        ahead(0.06, regulariser__name="rho"),
        ahead(0.03, regulariser__name="rho"),
    ),
    "roth_margin_best_sop": (
        ["roth2020/sop"],
        ahead(0.02, loss__name="margin", loss__beta=1.2),
        ahead(0.02, loss__name="arcface"),
    ),
    "roth_triplet_mining": (
        ROTH,
        ahead(0.02, miner__name="distance_weighted"),
        lambda spec, metric: 0.5 + 0.02 * (spec.get("miner.name") == "semihard" and spec[DATA] == "sop"),
    ),
    "roth_losses_saturate": (["roth2020/cub"], ahead(0.01, loss__name="npair"), ahead(0.05, loss__name="npair")),
    "roth_samplers_small_cub_cars": (
        on(SAMPLERS, "cub", "cars196"),
        ahead(0.01, sampler__name="gc"),
        ahead(0.05, sampler__name="gc", data__name="cars196"),
    ),
    "roth_samplers_small_sop": (
        [*on(SAMPLERS, "cars196"), SAMPLERS_SOP],
        ahead(0.01, sampler__name="gc"),
        ahead(0.05, sampler__name="gc", loss__name="npair", data__name="sop"),
    ),
    "roth_spectral_decay_correlates": (ROTH, correlated(-1), correlated(1)),
    "roth_mixup_hurts": (["roth2020/mixup"], mixup(-0.02, 0.1), mixup(-0.02, -0.1)),
    "hist_over_ablations": (
        ["hist/ablations"],
        lambda spec, metric: 0.5 + 0.02 * plain(spec),
        ahead(0.02, loss__graph="attention"),
    ),
    "hist_positives_only_between": (["hist/ablations"], graphs(0.6, 0.55, 0.5), graphs(0.6, 0.45, 0.5)),
    "hist_distribution_loss_large": (
        ["hist/ablations"],
        ahead(0.05, loss__distribution_loss=True),
        ahead(0.01, loss__distribution_loss=True),
    ),
    "hist_distributions_over_proxies": (
        on("hist/proxies", "cub", "cars196"),
        ahead(0.02, loss__variance=True),
        lambda spec, metric: 0.5 + 0.02 * spec["loss.variance"] * (1 if spec[DATA] == "cub" else -1),
    ),
    "hist_balanced_helps_cub": (
        ["hist/batches"],
        ahead(0.01, sampler__name="balanced"),
        behind(0.01, sampler__name="balanced"),
    ),
    "hist_larger_dim_helps": (
        ["hist/dims"],
        by(DIM, {64: 0.4, 128: 0.42, 256: 0.44, 512: 0.46, 1024: 0.47}),
        by(DIM, {64: 0.4, 128: 0.42, 256: 0.44, 512: 0.46, 1024: 0.45}),
    ),
    "hist_best_reality_check": (
        MLRC,
        ahead(0.02, loss__name="hist"),
        lambda spec, metric: (
            0.5
            + 0.02 * (spec[LOSS] == "hist")
            - 0.04 * (spec[LOSS] == "hist" and metric == "joined p@1" and spec[DATA] == "cars196")
        ),
    ),
    "hist_best_dim64": (
        on("hist/dim64", *SETS),
        ahead(0.02, loss__name="hist"),
        lambda spec, metric: 0.5 + (-0.02 if metric == "recall@8" else 0.02) * (spec[LOSS] == "hist"),
    ),
    "hist_224_over_others_256": (
        on("hist/px256", *SETS),
        ahead(0.02, loss__name="hist"),
        lambda spec, metric: 0.5 + 0.02 * (spec[LOSS] == "hist") * (-1 if metric == "recall@1000" else 1),
    ),
    "drml_improves_mlrc": (
        DRML,
        drml(0.02),
        lambda spec, metric: (
            0.5
            + (spec.get("method.name") == "drml")
            * (-0.02 if (metric, spec[LOSS], spec[DATA]) == ("joined p@1", "triplet", "cub") else 0.02)
        ),
    ),
    "drml_state_of_the_art_mlrc": ([*DRML, *MLRC], drml(0.02), drml(-0.02)),
    "drml_improves_imagenet": (
        ["drml/imagenet"],
        drml(0.02),
        lambda spec, metric: 0.5 + (-0.02 if metric == "nmi" else 0.02) * (spec.get("method.name") == "drml"),
    ),
    "drml_margin_below_softmax_imagenet": (
        ["drml/imagenet"],
        by(LOSS, {"margin": 0.5, "softmax": 0.52, "triplet": 0.54, "proxy_anchor": 0.6}),
        by(LOSS, {"margin": 0.54, "softmax": 0.52, "triplet": 0.54, "proxy_anchor": 0.6}),
    ),
}


@lru_cache
def cells(study):
    """Name and settings of every row of a real study, its seeds, its folds and its metrics."""
    file, _, data = study.partition(" ")
    content = yaml.safe_load((FOLDER / f"{file}.yaml").read_text())
    whole = {**content, **content["real"]}
    seeds, folds = whole.get("seeds", [0]), list(range(4)) if whole.get("folds") else [None]
    one = {"seeds": [0], "baselines": "none", **({"folds": [0]} if folds[1:] else {})}  # the others are the same rows
    real_study = real(content | {"real": content["real"] | one}, *data.split())
    rows = [(f"{study}: {' '.join(cell.labels)}", flatten(resolve(cell.spec).whole())) for cell in real_study.cells]
    return rows, seeds, folds, set(real_study.metrics)


def made_up(name, spec, level, seeds, folds, metrics):
    """A row with these values, and a little luck."""

    def value(metric, seed):
        luck = np.random.default_rng(zlib.crc32(f"{name} {metric} {seed}".encode())).normal(0, 0.0002)
        return level(spec, metric) + float(luck)

    single = {m: Row(name, {Key(s, Place((), f)): value(m, s) for s in seeds for f in folds}) for m in metrics}
    joined = {m: Row.of_seeds(name, {s: value(f"joined {m}", s) for s in seeds}) for m in metrics} if folds[1:] else {}
    return StudyRow(name, spec, single, joined)


def twin_rows(name, level):
    one = claim(name)
    rows = []
    for study in TWINS[name][0]:
        labelled, seeds, folds, _ = cells(study)
        rows += [made_up(label, spec, level, seeds, folds, one.metrics) for label, spec in labelled]
    return rows


def verdict_of(name, rows):
    verdicts = decide_together(claims(), rows, "twin")
    return next(verdict for one, verdict in zip(claims(), verdicts, strict=True) if one.id == name)


def test_every_claim_that_is_written_for_code_has_a_twin():
    assert set(TWINS) == {one.id for one in claims() if one.in_study is not None}


@pytest.mark.parametrize("name", TWINS)
def test_a_claim_that_is_true_holds(name):
    verdict = verdict_of(name, twin_rows(name, TWINS[name][1]))
    assert verdict.state == HOLDS, verdict.reason
    assert not verdict.differs


@pytest.mark.parametrize("name", TWINS)
def test_a_claim_that_is_false_does_not_hold(name):
    verdict = verdict_of(name, twin_rows(name, TWINS[name][2]))
    assert verdict.state == FAILS, verdict.reason


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_measures_what_the_claim_speaks_of(name):
    """Epochs are in the log of every run."""
    listed = set.union(*(cells(study)[3] for study in TWINS[name][0]))
    assert {metric for metric in claim(name).metrics if not metric.startswith(EPOCH)} <= listed
