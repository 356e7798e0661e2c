"""The reference batch: 8 embeddings of 4 dimensions, class 3 with one sample, 5 classes. Values that tests compare with
were computed from the formulas by independent numpy code, to 1e-5."""

import torch

from nearkin.pairs import Triplets

Y = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3])
_i = torch.arange(1.0, 9.0, dtype=torch.float64)[:, None]
_j = torch.arange(1.0, 5.0, dtype=torch.float64)
_c = Y[:, None]
Z = (torch.cos(1.7 * _c + 0.9 * _j + 0.6 * _c * _j) + 0.8 * torch.sin(1.3 * _i + 0.7 * _j + 0.2 * _i * _j)) * (
    0.6 + 0.1 * _i
)
_p = torch.arange(5.0, dtype=torch.float64)[:, None]
PROXIES = (torch.cos(1.7 * _p + 0.9 * _j + 0.6 * _p * _j) + 0.5 * torch.cos(0.9 * _p + 1.1 * _j)) * (0.6 + 0.1 * _p)
_k = torch.arange(1.0, 11.0, dtype=torch.float64)[:, None]
_q = (_k - 1) // 2
CENTRES = torch.cos(1.7 * _q + 0.9 * _j + 0.6 * _q * _j) + 0.7 * torch.cos(0.4 * _k + 0.8 * _j + 0.25 * _k * _j)

TRIPLETS = Triplets(*torch.tensor([(0, 1, 3), (1, 2, 5), (3, 4, 0), (5, 6, 7), (2, 0, 4)]).T)
COUPLES = torch.tensor([(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 6), (6, 5)]).T
QUADRUPLETS = torch.tensor([(0, 1, 3, 5), (1, 2, 5, 3), (3, 4, 0, 6), (5, 6, 7, 1), (2, 0, 4, 7)]).T
