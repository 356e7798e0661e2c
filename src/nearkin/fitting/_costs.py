"""What the runs of a fit take, from a few steps that were tried."""

from nearkin.fitting._plan import START, Costs
from nearkin.runs.prepare import Prepared
from nearkin.studies.pace import EMBEDDED, work_of

BEHIND_A_CUT = 0.35  # of a step of the whole network, measured on EfficientNet-Lite0 behind block10


def costs_of(prepared: Prepared, batch: float, images: int, spent: float, *, behind: bool = False) -> Costs:
    """Seconds of the runs of one network.

    Parameters:
        prepared: one fold.
        batch: seconds of a step, as it was tried.
        images: of all classes.
        spent: seconds that are gone.
        behind: is only the part behind a cut trained? Plain views go through the front once, further ones in every
            fold, because other images train.
    """
    size, views = prepared.spec.train.batch or 1, prepared.spec.model.views
    step = BEHIND_A_CUT * batch if behind else batch
    embedded = EMBEDDED * batch / size  # an image, by the whole network
    further = embedded * (views - 1) * len(prepared.labels) if behind else 0.0
    run = START + work_of(prepared) * step + 2 * EMBEDDED * step * images / size + further
    plain = embedded * images if behind else 0.0
    return Costs(run, START + embedded * images, run * images / len(prepared.labels), spent + plain)
