"""How `nearkin choose` shares out its time. Pure arithmetic; a unit is `batches` steps and one validation.

screening    every method for 1 unit, the better half for 1 more
finals       the best three of them, from the start, for 8 units; once per seed
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

UNITS = 8  # of a final run
FINALISTS = 3
MOST_SEEDS = 5
PASSES = 20  # over the training images, at most: longer runs overfit on our data
SHARE = 0.75  # of the time is planned; the rest is for what takes longer than thought
LEAST = 25  # steps of a unit, so that it says something; fewer of one method alone
START = 1.0  # seconds to begin a run, in a process that is warm


@dataclass(frozen=True)
class Costs:
    """What things take, in seconds of one worker.

    Parameters:
        batch: one step.
        validate: to embed the validation images.
        finish: to embed training and validation images at the end of a run.
        test: to embed and measure the test images.
        spent: what was spent before anything could be planned.
    """

    batch: float
    validate: float
    finish: float
    test: float
    spent: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What is done in the time.

    Parameters:
        batches: steps of a unit; 0: there is no time to train.
        methods: how many are screened.
        finalists: how many are trained for real.
        seeds: of each finalist.
        whole: do final runs have as many steps as they should?
    """

    batches: int
    methods: int
    finalists: int
    seeds: int
    whole: bool

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def halved(methods: int) -> int:
    """How many go on after the first unit."""
    return methods // 2 + methods % 2 if methods > FINALISTS else methods


def plan(seconds: float, workers: int, costs: Costs, *, methods: int, per_pass: int) -> Plan:
    """The best use of `seconds`.

    As many methods as possible are screened, for at least 25 steps each; then runs become longer, up to 20 passes over
    the training images; what is left then goes into more seeds.

    Parameters:
        seconds: all that there is.
        workers: runs at a time.
        costs: what things take.
        methods: how many there are.
        per_pass: batches of a pass over the training images.
    """
    time = SHARE * seconds - costs.spent - costs.test
    most = max(1, round(PASSES * per_pass / UNITS))
    for count in range(methods, 0, -1):
        finalists = min(FINALISTS, count)
        batches = _affordable(time, count, finalists, workers, costs)
        if batches >= (min(LEAST, most) if count > 1 else 1):
            break
    else:
        return Plan(0, 0, 0, 0, False)
    batches = min(batches, most)
    left = time - _screening(batches, count, workers, costs)
    affordable = [s for s in range(1, MOST_SEEDS + 1) if _finals(batches, finalists, s, workers, costs) <= left]
    seeds = max(affordable, default=1) if batches == most else 1
    return Plan(batches, count, finalists, seeds, batches == most)


def _affordable(time: float, methods: int, finalists: int, workers: int, costs: Costs) -> int:
    """The largest number of steps of a unit with which all of it fits; 0 where none does."""

    def fits(batches: int) -> bool:
        finals = _finals(batches, finalists, 1, workers, costs)
        return _screening(batches, methods, workers, costs) + finals <= time

    batches = 0
    for step in (4096, 512, 64, 8, 1):
        while fits(batches + step):
            batches += step
    return batches


def _screening(batches: int, methods: int, workers: int, costs: Costs) -> float:
    """Seconds to wait: runs go in rows of as many as there are workers."""
    unit = START + batches * costs.batch + costs.validate
    again = halved(methods) if methods > FINALISTS else 0
    return (math.ceil(methods / workers) + math.ceil(again / workers)) * unit


def _finals(batches: int, finalists: int, seeds: int, workers: int, costs: Costs) -> float:
    """Seconds to wait for all seeds of the finalists; a seed begins when the one before is over."""
    one = START + UNITS * (batches * costs.batch + costs.validate) + costs.finish
    return seeds * math.ceil(finalists / workers) * one
