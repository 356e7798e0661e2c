"""Does screening tell which loss is best? Rank correlation of early or frozen results with full training.

    python examples/screening.py cub --runs runs                    # after each epoch of a study's own runs
    python examples/screening.py cub --heads cub_heads --runs runs  # and of heads that were trained on frozen features

Spearman's correlation over the losses of a study: validation MAP@R of the screening result, mean over seeds, with the
validation and the test MAP@R of the full runs.
"""

import argparse

import numpy as np
from scipy import stats

from nearkin.comparison.gather import gather

METRIC = "map_at_r"


def by_loss(study, value):
    """Loss -> mean over seeds of a value of a run; untrained networks are left out."""
    found = {}
    for member in study.tested:
        if not member.untrained and (own := value(member)) is not None:
            found.setdefault(next(iter(member.labels.values())), {})[member.seed] = own
    return {name: float(np.mean(list(seeds.values()))) for name, seeds in found.items()}


def at(epoch):
    """The best validation result up to an epoch."""

    def value(member):
        lines = [line for line in member.run.log_lines() if line.get("epoch_end", epoch + 1) <= epoch]
        return max((line["validation"][METRIC] for line in lines if METRIC in line.get("validation", {})), default=None)

    return value


def correlation(first, second):
    """Spearman's correlation over the losses that both have, and how many they are."""
    names = [name for name in first if name in second]
    return stats.spearmanr([first[n] for n in names], [second[n] for n in names]).statistic, len(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--heads", help="a study of the same losses with cut=all")
    parser.add_argument("--runs", default="runs")
    given = parser.parse_args()
    study = gather([given.study], given.runs)
    validation = by_loss(study, lambda m: m.run.read_json("final.json")["validation"].get(METRIC))
    tested = by_loss(study, lambda m: m.run.metrics().get(METRIC))
    epochs = max(m.settings["train.epochs"] for m in study.tested)
    print(f"\n| screened by | losses | with full validation {METRIC} | with full test {METRIC} |\n|---|---:|---:|---:|")
    screens = {f"{epoch} of {epochs} epochs": by_loss(study, at(epoch)) for epoch in range(1, min(epochs, 5))}
    if given.heads:
        heads = gather([given.heads], given.runs)
        screens["heads on frozen features"] = by_loss(
            heads, lambda m: m.run.read_json("final.json")["validation"].get(METRIC)
        )
    for name, own in screens.items():
        (a, n), (b, _) = correlation(own, validation), correlation(own, tested)
        print(f"| {name} | {n} | {a:+.2f} | {b:+.2f} |")
    print(f"| full validation | {len(validation)} | 1 | {correlation(validation, tested)[0]:+.2f} |")


if __name__ == "__main__":
    main()
