"""Errors of the library name settings, as in `metric=nmi`; on the command line the same setting is a flag."""

import re

FLAGS = {
    "address": "--ray",
    "against": "--against",
    "bootstrap": "--bootstrap",
    "budget_mib": "--budget",
    "by": "--by",
    "classes_from": "--classes-from",
    "deep": "--deep",
    "distance": "--distance",
    "evaluation": "--evaluation",
    "images": "--images",
    "include_trained": "--include-trained",
    "metric": "--metric",
    "minutes": "--minutes",
    "output": "--output",
    "pair": "--pair",
    "part": "--part",
    "published": "--published",
    "reading": "--reading",
    "runs": "--runs",
    "sort": "--sort",
    "storage": "--storage",
    "trust": "--trust",
    "where": "--where",
    "within": "--within",
}
SETTING = re.compile(rf"(?<![\w.'])({'|'.join(FLAGS)})=(True\b)?")


def in_flags(message: str) -> str:
    """A message with flags in place of the settings that it names: `metric=nmi` is `--metric nmi`, `trust=True` is
    `--trust`. A dotted key, as in `sampler.metric=x`, is a word on the command line too, and stays."""
    return SETTING.sub(lambda setting: FLAGS[setting[1]] + ("" if setting[2] else " "), message)
