"""Exports of matrix products: linear layers, products of arguments, einsum."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from tests.models.exports.export import export, of


class TiedEmbedding(nn.Module):
    """An embedding whose weight is also that of the last product."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.linear(torch.tanh(self.embedding(tokens)), self.embedding.weight)


class Experts(nn.Module):
    """All of several linear layers, weighted by a softmax of the input."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.weight = nn.Parameter(torch.randn(experts, width, width) / width**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.router(x), -1)
        return torch.einsum("bd,edf,be->bf", x, self.weight, weights)


def mlp(*sizes: int, act: type[nn.Module] = nn.ReLU, **options: str) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inner, outer in pairwise(sizes):
        layers += [nn.Linear(inner, outer), act(**options)]
    return nn.Sequential(*layers[:-1])


EXPORTS = (
    export("linear", lambda: nn.Linear(24, 40), (8, 24)),
    export("linear_without_bias", lambda: nn.Linear(32, 64, bias=False), (16, 32)),
    export("linear_of_a_vector", lambda: nn.Linear(48, 32), (48,)),
    export("linear_of_one_row", lambda: nn.Linear(64, 48), (1, 64)),
    export("linear_of_a_batch", lambda: nn.Linear(32, 48), (2, 5, 32)),
    export("linear_of_primes", lambda: nn.Linear(13, 29), (7, 13)),
    export("linear_to_one", lambda: nn.Linear(33, 1), (9, 33)),
    export("mlp_relu", lambda: mlp(64, 128, 128, 32), (32, 64)),
    export("mlp_gelu_tanh", lambda: mlp(32, 64, 32, act=nn.GELU, approximate="tanh"), (16, 32)),
    export("mlp_tanh_of_primes", lambda: mlp(11, 23, 5, act=nn.Tanh), (17, 11)),
    export("tied_embedding", lambda: TiedEmbedding(40, 16), torch.tensor([3, 39, 0, 7, 7])),
    export("experts", lambda: Experts(16, 4), (6, 16)),
    export("bilinear", lambda: nn.Bilinear(7, 9, 5), (6, 7), (6, 9)),
    of("matmul_of_arguments", torch.matmul, (16, 24), (24, 32)),
    of("matmul_of_transposed_arguments", lambda a, b: a.T @ b.T, (24, 16), (32, 24)),
    of("addmm_scaled", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0), (16, 32), (16, 8), (8, 32)),
    of("bmm", torch.bmm, (3, 16, 24), (3, 24, 8)),
    of("bmm_transposed", lambda q, k: q @ k.transpose(-2, -1), (2, 4, 8, 16), (2, 4, 8, 16)),
    of("matmul_broadcast", torch.matmul, (2, 3, 8, 16), (16, 24)),
    of("matmul_broadcast_batch", torch.matmul, (2, 1, 8, 16), (3, 16, 8)),
    of("matmul_of_vectors", torch.matmul, (64,), (64,)),
    of("matrix_times_vector", torch.matmul, (24, 40), (40,)),
    of("einsum_heads", lambda q, k: torch.einsum("bihd,bjhd->bhij", q, k), (2, 6, 3, 8), (2, 5, 3, 8)),
    of("einsum_trace_like", lambda a, b: torch.einsum("ij,ij->i", a, b), (8, 24), (8, 24)),
    of("outer_and_dot", lambda a, b: (torch.outer(a, b), torch.dot(a, b)), (24,), (24,)),
    of("chain_of_matmuls", lambda a, b, c: (a @ b) @ c, (8, 16), (16, 24), (24, 8)),
    of("two_products_of_one_matrix", lambda a, b, c: (a @ b, a @ c), (16, 32), (32, 16), (32, 8)),
    of("product_with_itself", lambda a: a @ a.T, (16, 24)),
    of("product_and_residual", lambda a, b: torch.relu(a @ b + a), (16, 16), (16, 16)),
)
