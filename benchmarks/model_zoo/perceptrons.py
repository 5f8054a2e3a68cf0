"""Models that are mostly linear layers: an MLP, and a recommendation model with embeddings like DLRM."""

from itertools import pairwise

import torch
from torch import nn


def mlp(*sizes: int) -> nn.Sequential:
    """Returns linear layers of these widths with ReLU between them."""
    layers: list[nn.Module] = []
    for inner, outer in pairwise(sizes):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    """Numbers through an MLP, categories through embeddings, products of each pair, an MLP over these."""

    def __init__(self, numbers: int, categories: int, words: int, width: int) -> None:
        super().__init__()
        self.bottom = mlp(numbers, 4 * width, width)
        self.embeddings = nn.ModuleList(nn.Embedding(words, width) for _ in range(categories))
        features = categories + 1
        self.top = mlp(width + features * features, 8 * width, 1)

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        """Returns a probability for each row of numbers (batch, n) and of categories (batch, categories)."""
        dense = self.bottom(numbers)
        rows = [table(categories[:, number]) for number, table in enumerate(self.embeddings)]
        features = torch.stack([dense, *rows], 1)
        pairs = features @ features.transpose(1, 2)
        return torch.sigmoid(self.top(torch.cat([dense, pairs.flatten(1)], 1)))
