"""`Objective` = loss + miner: the one module that the trainer optimises and saves beside the model.

Proxies, class weights and β are its parameters, so they can never be forgotten by the optimiser or the
checkpoint.
"""

from typing import Any

from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError
from nearkin.losses import Loss
from nearkin.miners import Miner
from nearkin.pairs import Embedded, Pairs
from nearkin.registry import MINERS


class Objective(nn.Module):
    def __init__(self, loss: Loss, miner: Miner | None = None):
        super().__init__()
        if miner is not None and miner.gives not in loss.accepts:
            fits = [m for m in MINERS.names() if MINERS[m].gives in loss.accepts]
            raise NearkinError(
                f"miner {type(miner).__name__} gives {miner.gives.__name__}, which {type(loss).__name__} "
                f"does not take; miners that fit: {', '.join(fits) or 'none (it uses all samples)'}"
            )
        self.loss = loss
        self.miner = miner

    def forward(self, embedded: Embedded | Tensor, labels: Tensor, generator: Generator | None = None) -> Tensor:
        z = embedded.z if isinstance(embedded, Embedded) else embedded
        pairs = Pairs.of(z, labels)
        tuples = self.miner(pairs, generator=generator) if self.miner is not None else None
        return self.loss(pairs, None, tuples)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Groups of the objective's own parameters; `lr_factor` multiplies the base learning rate."""
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"name": "loss", "params": parameters, "lr_factor": self.loss.lr_factor}] if parameters else []
