"""What the full study of the literature would cost, in GPU hours: the numbers of docs/scale.md.

    python examples/scale.py

10 losses x 3 networks x 3 data sets x 4 sizes of the embedding x 10 seeds x 4 folds. Epochs are those of the recipe
psomas2020, read from the package; images are those of the official divisions; images per second are an assumption.
"""

from nearkin.config.spec import make_spec
from nearkin.runs.defaults import resolve

LOSSES, SIZES, SEEDS, FOLDS = 10, 4, 10, 4
SPEED = {"resnet50": 800, "bn_inception": 1400, "googlenet": 1800}  # images trained per second on one A100: assumed
FORWARD = 3  # an image that is only embedded costs a third of one that is trained
IMAGES = {"cub": (5_864, 5_924), "cars196": (8_054, 8_131), "sop": (59_551, 60_502)}  # of training and test classes
GPUS = (1, 8, 64)


def epochs(data: str, network: str) -> int:
    """Of a run, warm-up included."""
    told = resolve(make_spec({"recipe": "psomas2020", "dataset": data, "root": "anywhere", "backbone": network})).train
    return (told.epochs or 0) + (0 if told.warmup_counts else told.warmup)


def hours(data: str, network: str) -> float:
    """GPU hours of one run: in every epoch three of four folds of the training images are trained and the fourth is
    embedded, at the end the test images once."""
    train, test = IMAGES[data]
    passes = epochs(data, network) * (train * (FOLDS - 1) / FOLDS + train / FOLDS / FORWARD) + test / FORWARD
    return passes / SPEED[network] / 3600


def main() -> None:
    """Print both tables."""
    each = LOSSES * SIZES * SEEDS * FOLDS
    print("| data | network | epochs | images/s | hours per run | runs | GPU hours |")
    print("|---|---|---:|---:|---:|---:|---:|")
    total = 0.0
    for data in IMAGES:
        for network in SPEED:
            one = hours(data, network)
            total += each * one
            speed = f"{epochs(data, network)} | {SPEED[network]:,}"
            print(f"| {data} | {network} | {speed} | {one:.2f} | {each:,} | {each * one:,.0f} |")
    print(f"| all | | | | | {each * len(IMAGES) * len(SPEED):,} | {total:,.0f} |")
    print("\n| GPUs | days |\n|---:|---:|")
    for gpus in GPUS:
        print(f"| {gpus} | {total / gpus / 24:,.1f} |")


if __name__ == "__main__":
    main()
