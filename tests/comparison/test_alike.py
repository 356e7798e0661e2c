"""Runs that are alike but for one thing: a recipe's own consequence of it is no other method."""

import pytest
from stores import add_run, add_study

from nearkin.comparison.alike import alike
from nearkin.comparison.gather import gather


def switches(key):
    return key.startswith("regulariser")


def groups(root, rows, free=switches, base=None):
    """label -> words; the names of the groups -> their labels."""
    base = {"recipe": "roth2020"} if base is None else base
    cells = []
    for number, (label, words) in enumerate(rows.items()):
        run = f"{number:012x}"
        add_run(root, run, base | words, {"map_at_r": 0.5})
        cells.append({"labels": [label], "seed": 0, "run": run})
    add_study(root, "toy", ["method"], cells)
    grouped = alike(gather(["toy"], root).members, free)
    return {name: [member.labels["method"] for member in members] for name, members in grouped.items()}


RHO = {"regulariser": "rho"}
SNR = {"loss": "snr_triplet"}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (  # the recipe turns SNR's norm term on with rho switching
            {"SNR": SNR, "R-SNR": SNR | RHO},
            {"SNR": ["SNR", "R-SNR"]},
        ),
        (
            {"R-SNR": SNR | RHO, "SNR": SNR, "SNR, p 0": SNR | RHO | {"regulariser.p_switch": 0.0}},
            {
                "snr_triplet + distance_weighted": ["R-SNR", "SNR", "SNR, p 0"]
            },  # two labels without it: neither is the name
        ),
        (  # what the user sets is another method
            {"SNR": SNR, "R-SNR": SNR | RHO | {"loss.reg_weight": 0.1}},
            {"SNR": ["SNR"], "R-SNR": ["R-SNR"]},
        ),
        (  # where the user sets it for both, it is the same, whatever the recipe says of either
            {"SNR": SNR | {"loss.reg_weight": 0.005}, "R-SNR": SNR | RHO | {"loss.reg_weight": 0.005}},
            {"SNR": ["SNR", "R-SNR"]},
        ),
        (
            {
                "Margin .6": {"loss": "margin", "loss.beta": 0.6},
                "Margin 1.2": {"loss": "margin"},
                "R-Margin .6": {"loss": "margin", "loss.beta": 0.6} | RHO,
                "R-Margin 1.2": {"loss": "margin"} | RHO,
            },
            {"Margin .6": ["Margin .6", "R-Margin .6"], "Margin 1.2": ["Margin 1.2", "R-Margin 1.2"]},
        ),
    ],
)
def test_with_and_without_a_regulariser(tmp_path, rows, expected):
    assert groups(tmp_path, rows) == expected


def test_equal_names_are_told_apart_by_what_differs(tmp_path):
    rows = {
        f"{dim} {beta}": {"loss": "margin", "dim": dim, "loss.beta": beta} for dim in (16, 64) for beta in (0.6, 1.2)
    }
    assert groups(tmp_path, rows, lambda key: key == "model.dim") == {
        "margin + distance_weighted, loss.beta 0.6": ["16 0.6", "64 0.6"],
        "margin + distance_weighted, loss.beta 1.2": ["16 1.2", "64 1.2"],
    }


def test_a_recipe_gives_networks_other_batches(tmp_path):
    """Psomas 2020: ResNet50 has another batch, step and warm-up than BN-Inception."""
    rows = {name: {"backbone": name, "loss": "triplet", "dataset": "cub"} for name in ("resnet50", "bn_inception")}

    def free(key):
        return key.startswith(("model.", "data.")) and key != "model.dim"

    both = {"triplet + semihard": ["resnet50", "bn_inception"]}
    assert groups(tmp_path / "as published", rows, free, base={"recipe": "psomas2020"}) == both
    rows["resnet50"]["train.gamma"] = 0.5
    other = groups(tmp_path / "changed", rows, free, base={"recipe": "psomas2020"})
    assert sorted(other.values()) == [["bn_inception"], ["resnet50"]]
