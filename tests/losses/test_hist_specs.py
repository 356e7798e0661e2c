"""The ready specs of HIST against the published table of settings."""

from pathlib import Path

import pytest

from nearkin.config.spec import read_spec

STUDIES = Path(__file__).parents[2] / "studies" / "hist"
# lr-HGNN, lr-D, τ, α, lr, epochs, weight decay, optimiser, step, frozen BatchNorm
PUBLISHED = {
    "cub_bn_inception": (5e-4, 5e-2, 16, 1.0, 1e-4, 30, 1e-4, "adamw", 5, True),
    "cars196_bn_inception": (5e-4, 1e-1, 24, 0.9, 1e-4, 60, 5e-5, "adamw", 10, True),
    "sop_bn_inception": (1e-3, 1e-2, 16, 1.6, 1e-4, 60, 1e-4, "adamw", 10, False),
    "cub_resnet50": (6e-4, 1e-1, 32, 1.1, 1.2e-4, 40, 5e-5, "adam", 5, True),
    "cars196_resnet50": (1e-3, 1e-1, 32, 0.9, 1e-4, 50, 1e-4, "adam", 10, True),
    "sop_resnet50": (1e-3, 1e-2, 16, 2.0, 1e-4, 60, 1e-4, "adam", 10, False),
}


def test_there_is_a_ready_spec_for_every_published_setting():
    assert {path.stem for path in STUDIES.glob("*.yaml")} >= set(PUBLISHED)


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_a_ready_spec_has_the_published_settings(name):
    spec = read_spec(STUDIES / f"{name}.yaml")
    train, model, loss = spec.train, spec.model, spec.loss.params
    settings = (
        train.groups["hgnn"].lr,
        train.groups["distributions"].lr,
        loss["tau"],
        loss["alpha"],
        train.lr,
        train.epochs,
        train.weight_decay,
        train.optimiser,
        train.step,
        model.freeze_bn,
    )
    assert settings == PUBLISHED[name]
    assert (train.batch, train.warmup, train.warmup_counts, train.schedule, train.gamma) == (32, 1, False, "step", 0.5)
    assert (model.dim, model.pool, model.norm) == (512, "both", "layer")
    assert (spec.sampler.name, spec.loss.name) == ("random", "hist")
    assert name == f"{spec.data.name}_{model.backbone}"
