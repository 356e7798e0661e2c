"""Penalty on the norm of the raw embeddings."""

from typing import ClassVar

from torch import Tensor

from nearkin.config.bounds import at_least, one_of
from nearkin.numerics import mean_norm
from nearkin.pairs import Pairs
from nearkin.registry import REGULARISERS
from nearkin.regularisers.base import Regulariser
from nearkin.spaces import Space


@REGULARISERS.register("norm")
class Norm(Regulariser):
    """Penalty on the norm of the raw embeddings, added to the loss.

        ν · mean_i ‖z_i‖^power

    Source: ν = 0.005 and the plain norm as in the code of Roth et al. 2020 (their equations 3 to 5 print the square:
    power=2).

    Parameters:
        nu: ν, weight of the penalty; at least 0.
        power: 1 penalises ‖z‖, 2 penalises ‖z‖².

    Shapes: embeddings (B, D); the penalty is a scalar.

    Example:
        regulariser = nearkin.regularisers.Norm(nu=0.005)
        objective = nearkin.engine.objective.Objective(nearkin.losses.Triplet(), None, [regulariser])
        value = objective(embeddings, labels)
    """

    search: ClassVar = {"nu": Space(1e-4, 0.1, log=True)}

    def __init__(self, *, nu: float = 0.005, power: int = 1):
        at_least(0, nu=nu)
        one_of("1", "2", power=str(power))
        self.nu = nu
        self.power = power

    def penalty(self, pairs: Pairs) -> Tensor:
        """ν · mean_i ‖z_i‖^power of the raw embeddings (B, D) in `pairs`, a scalar."""
        return self.nu * mean_norm(pairs.z, self.power)
