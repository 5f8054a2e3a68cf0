"""Exports of reductions: over one dimension, several or all, with and without the reduced dimension kept."""

import torch

from tests.programs.exports.export import of

CUBE = (4, 5, 6)

EXPORTS = (
    of("sum_of_all", torch.sum, CUBE),
    of("sum_of_rows", lambda x: x.sum(-1), (6, 40)),
    of("sum_of_columns", lambda x: x.sum(0, keepdim=True), (40, 6)),
    of("sum_of_two_dims", lambda x: x.sum((0, 2)), CUBE),
    of("mean_of_the_middle", lambda x: x.mean(1), CUBE),
    of("mean_of_two_dims", lambda x: x.mean((1, 2), keepdim=True), CUBE),
    of("greatest_and_least", lambda x: (x.amax(-1), x.amin((0, 1))), CUBE),
    of("greatest_with_index", lambda x: tuple(x.max(1)), CUBE),
    of("argmax", lambda x: x.argmax(-1), (6, 11)),
    of("argmin_of_columns", lambda x: x.argmin(0), (6, 11)),
    of("product", lambda x: x.prod(-1), (6, 7)),
    of("variance", lambda x: (x.var(-1), x.var(-1, correction=0)), (6, 24)),
    of("variance_and_mean", lambda x: torch.var_mean(x, -1), (6, 24)),
    of("norms", lambda x: (x.norm(), x.norm(1, -1), torch.linalg.vector_norm(x, dim=0)), (6, 24)),
    of("any_and_all", lambda x: ((x > 1).any(-1), (x > -1).all(-1)), (6, 11)),
    of("count_of_positive", lambda x: (x > 0).sum(-1), (6, 11)),
    of("softmax_then_argmax", lambda x: torch.softmax(x, -1).argmax(-1), (6, 11)),
    of("centered", lambda x: x - x.mean(0), (8, 12)),
    of("weighted_mean", lambda x, w: (x * w).sum(-1) / w.abs().sum(-1), (6, 11), (6, 11)),
)
