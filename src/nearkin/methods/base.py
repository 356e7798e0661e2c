"""What a method is: the module that a batch's embeddings are trained by."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.pairs import Embedded, Pairs
from nearkin.registry import METHODS
from nearkin.regularisers import Mix
from nearkin.spaces import Space


class Method(nn.Module):
    """From the embeddings of a batch to the value that is minimised.

    The plainest method is `Objective`: one loss, with its miner and regularisers. Others are built around objectives
    (`nearkin.methods.DRML`). The training loop knows nothing else: it calls a method, hands its parameters to the
    optimiser and saves them beside the model. A subclass defines `forward` and `parameter_groups`; one that is
    registered (`METHODS.register("my_method")`) also defines `around`.

    `search` declares what tuning may try: hyper-parameter, or dotted key of the spec -> space (`nearkin.spaces`).
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    head: ClassVar[str] = "linear"  # the head of the model that it needs
    search: ClassVar[Mapping[str, Space]] = {}

    @classmethod
    def around(cls, objective: Any, model: Any, **settings: Any) -> "Method":
        """The method for a model; `objective(dim)` makes an objective for embeddings of that width."""
        raise NearkinError(f"method {cls.__name__} does not define around(objective, model)")

    def forward(
        self,
        embedded: Embedded | Pairs | Tensor,
        labels: Tensor,
        generator: Generator | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """The loss of a batch: embeddings (B, D) and labels (B,) to a scalar; all randomness comes from the
        generator."""
        raise NearkinError(f"method {type(self).__name__} does not define forward(embedded, labels, ...)")

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Its own parameters, as groups for an optimiser.

        With a base rate, `parameter_groups(lr=1e-4)`, each group has its learning rate, `lr`, as torch's optimisers
        read it; without, a group has `lr_factor` or `lr`, as nearkin's own does (see `nearkin.losses.Loss`).
        """
        raise NearkinError(f"method {type(self).__name__} does not define parameter_groups(lr)")

    @property
    def mixes(self) -> bool:
        """Does it mix images of a batch inside the network?"""
        return False

    def mix(self, batch: int, stages: int, generator: Generator | None = None) -> Mix | None:
        """What the network should mix in this batch; None: nothing."""
        return None

    @property
    def active(self) -> Tensor | None:
        """Share of active terms in the last call, where it is counted."""
        return None

    def describe(self) -> dict[str, Any]:
        """What the log reports about it at the end of an epoch."""
        return {}

    def check_memory(self) -> None:
        """Refuse a cross-batch memory that this method cannot use."""


METHODS.takes(Method, words="a nearkin.methods.Method")
