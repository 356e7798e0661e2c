"""Bounds of hyper-parameters, checked where they are stored: `above(0, alpha=alpha, beta=beta)`."""

from nearkin.errors import NearkinError


def at_least(bound: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= bound:                                      # NaN fails too
            raise NearkinError(f"{name}={value}: must be at least {bound}")


def above(bound: float, **values: float) -> None:
    for name, value in values.items():
        if not value > bound:
            raise NearkinError(f"{name}={value}: must be above {bound}")


def between(low: float, high: float, **values: float) -> None:
    for name, value in values.items():
        if not low <= value <= high:
            raise NearkinError(f"{name}={value}: must lie between {low} and {high}")


def one_of(*known: str, **values: str) -> None:
    for name, value in values.items():
        if value not in known:
            raise NearkinError(f"{name}={value!r}: choices: {', '.join(known)}")
