"""N-pair on unit vectors sees directions only."""

import torch

from nearkin.losses import NPair


def test_unit_vectors_feel_no_pull_at_their_length():
    """With the norm of raw vectors in it, the loss could only fall by shrinking them, and directions became noise."""
    z = torch.randn(12, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    y = torch.arange(12) % 4
    loss = NPair(unit=True, nu=0.5)
    value = loss(z, y, generator=torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad(value, z)
    longer = loss(3 * z, y, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(longer, value, atol=1e-12)
    along = (gradient * z).sum(1) / z.norm(dim=1)
    assert torch.allclose(along, torch.zeros_like(along), atol=1e-12)
    assert gradient.abs().max() > 1e-3
