"""Exports of normalization layers, softmax and losses: reductions over rows, and arithmetic."""

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_zoo.transformers import RMSNorm
from tests.programs.exports.export import export, of


def with_statistics(norm: nn.Module) -> nn.Module:
    """Returns a batch norm with running statistics and weights that are not those of the start."""
    norm.running_mean.uniform_(-0.5, 0.5)
    norm.running_var.uniform_(0.5, 1.5)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.uniform_(norm.bias, -0.5, 0.5)
    return norm


CLASSES = torch.tensor([2, 0, 6, 6, 1])

EXPORTS = (
    export("layer_norm", lambda: nn.LayerNorm(48), (6, 48)),
    export("layer_norm_plain", lambda: nn.LayerNorm(37, elementwise_affine=False), (2, 5, 37)),
    export("layer_norm_of_two_dims", lambda: nn.LayerNorm((6, 8)), (3, 6, 8)),
    export("rms_norm", lambda: RMSNorm(48), (6, 48)),
    export("rms_norm_of_torch", lambda: nn.RMSNorm(40), (6, 40)),
    export("group_norm", lambda: nn.GroupNorm(4, 16), (2, 16, 5, 5)),
    export("instance_norm", lambda: nn.InstanceNorm2d(6), (2, 6, 7, 7)),
    export("batch_norm_1d", lambda: with_statistics(nn.BatchNorm1d(24)), (10, 24)),
    export("batch_norm_2d", lambda: with_statistics(nn.BatchNorm2d(8)), (2, 8, 6, 6)),
    of("unit_length", lambda x: F.normalize(x, dim=-1), (6, 24)),
    of("standardized", lambda x: (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5), (6, 24)),
    of("softmax", lambda x: torch.softmax(x, -1), (6, 40)),
    of("softmax_of_columns", lambda x: torch.softmax(x, 0), (12, 20)),
    of("softmax_scaled", lambda x: torch.softmax(x * 30, -1), (6, 40)),
    of("log_softmax", lambda x: F.log_softmax(x, -1), (6, 40)),
    of("logsumexp", lambda x: torch.logsumexp(x, -1), (6, 40)),
    of("cross_entropy", lambda x: F.cross_entropy(x, CLASSES), (5, 7)),
    of("nll_of_argument", F.nll_loss, (5, 7), CLASSES),
    of("mean_squared_error", F.mse_loss, (6, 24), (6, 24)),
    of("smooth_l1_loss", F.smooth_l1_loss, (6, 24), (6, 24)),
    of("binary_cross_entropy", lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), (24,), (24,)),
    of("kl_divergence", lambda x, y: F.kl_div(F.log_softmax(x, -1), torch.softmax(y, -1)), (5, 7), (5, 7)),
    of("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim=-1), (6, 24), (6, 24)),
)
