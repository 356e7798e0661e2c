"""Which regions made two images similar: the cosine of two embeddings as a sum over the places of the last map.

    f = Σ_u φ_u        what the place u of the last map x gives to the pooled feature f:
                       avg   φ_u = x_u / (h·w)
                       max   φ_uc = x_uc where u is the (first) place of the maximum of channel c, else 0
                       both  the sum of the two
    z = ψ_0 + Σ_u ψ_u  the same after an affine head: ψ_u = head(φ_u) - head(0), ψ_0 = head(0); a LayerNorm subtracts
                       each part's own mean and divides by the standard deviation of the whole, taken as a number
    c_u = ψ_u·z' / (‖z‖‖z'‖),    c_0 + Σ_u c_u = cos(z, z')

c_u is what place u adds to the similarity with the other image, above 0 or below; for both images of a pair. Source:
Stylianou et al. 2019 (WACV), who decompose average-pooled features; max pooling, head and LayerNorm are ours. A head
that is not affine (drml) cannot be decomposed: then z is the pooled feature, which the head is given.

Shapes: B images, C channels, h x w places, D dimensions.
"""

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from nearkin.analysis.embedded import last_map
from nearkin.models import Model
from nearkin.models.heads import NoHead
from nearkin.pairs import Embedded


@dataclass(frozen=True)
class Parts:
    """Embeddings as sums over places."""

    z: Tensor  # (B, D)
    places: Tensor  # (B, h, w, D) ψ_u
    rest: Tensor  # (B, D) ψ_0
    of: str  # embedding, or pooled feature


def shares(model: Model, x: Tensor) -> Tensor:
    """φ (B, h, w, C): what every place of the last map x (B, C, h, w) gives to the pooled feature."""
    b, c, h, w = x.shape
    phi = torch.zeros_like(x)
    if model.pool in ("avg", "both"):
        phi = phi + x / (h * w)
    if model.pool in ("max", "both"):
        at = x.flatten(2).argmax(2, keepdim=True)  # (B, C, 1)
        top = torch.zeros_like(x).flatten(2).scatter(2, at, x.flatten(2).gather(2, at))
        phi = phi + top.view(b, c, h, w)
    return phi.permute(0, 2, 3, 1)  # (B, h, w, C)


@torch.no_grad()
def parts_of(model: Model, images: Tensor) -> Parts:
    """The embeddings of images (B, 3, H, W) uint8 as sums over the places of the last map."""
    phi = shares(model, last_map(model, model.record.normalise(images)).cpu().double())  # (B, h, w, C)
    f = phi.sum((1, 2))  # (B, C)
    inside, rest = _layer(model.pre_norm, f, phi, torch.zeros_like(f))
    pooled = inside.sum((1, 2)) + rest  # what the head takes
    out, apart = _through(model.head, pooled), _through(model.head, rest)  # (B, D)
    psi = _through(model.head, inside) - _through(model.head, torch.zeros_like(pooled[:1]))  # (B, h, w, D)
    if not torch.allclose(psi.sum((1, 2)) + apart, out, rtol=1e-3, atol=1e-4 * float(out.abs().max())):
        return Parts(pooled, inside, rest, "pooled feature")
    psi, apart = _layer(model.norm, out, psi, apart)
    return Parts(psi.sum((1, 2)) + apart, psi, apart, "embedding")


def _layer(norm: nn.Module, whole: Tensor, places: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """Both kinds of parts after a LayerNorm without parameters, whose deviation is that of the whole."""
    if not isinstance(norm, nn.LayerNorm):
        return places, rest
    deviation = (whole.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()  # (B, 1)
    places = (places - places.mean(-1, keepdim=True)) / deviation[:, None, None]
    return places, (rest - rest.mean(-1, keepdim=True)) / deviation


def _through(head: nn.Module, x: Tensor) -> Tensor:
    """Vectors of any leading shape behind a head; linear ones in double precision, results are on the CPU."""
    if isinstance(head, NoHead):
        return x
    flat = x.reshape(-1, x.shape[-1])
    if isinstance(head, nn.Linear):
        bias = 0 if head.bias is None else head.bias.cpu().double()
        out = flat @ head.weight.cpu().double().T + bias
    else:
        first = next(chain(head.parameters(), head.buffers()), flat)
        z = head(flat.to(first.device, first.dtype))
        out = (z.z if isinstance(z, Embedded) else z).cpu().double()
    return out.reshape(*x.shape[:-1], out.shape[-1])


def regions(first: Parts, second: Parts) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of B pairs of images: c_u of the first and of the second, (B, h, w) each, what belongs to no place in each (B,),
    stacked (2, B), and the cosine (B,)."""
    z, other = first.z, second.z
    length = (z.norm(dim=1) * other.norm(dim=1)).clamp_min(1e-30)  # (B,)
    here = torch.einsum("bhwd,bd->bhw", first.places, other) / length[:, None, None]
    there = torch.einsum("bhwd,bd->bhw", second.places, z) / length[:, None, None]
    rest = torch.stack([(first.rest * other).sum(1), (second.rest * z).sum(1)]) / length
    return here, there, rest, (z * other).sum(1) / length
