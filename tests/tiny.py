"""Words of a run that takes a second."""

TINY = {
    "dataset": "glyphs",
    "data.classes": 24,
    "data.per_class": 10,
    "backbone": "convnet",
    "dim": 16,
    "train.batch": 16,
    "sampler.per_class": 4,
    "epochs": 2,
}
