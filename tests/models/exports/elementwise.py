"""Exports of elementwise operations, of reductions, and of normalization layers, softmax and losses."""

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.model_zoo.transformers import RMSNorm
from tests.models.exports.export import export, of

SMALL = torch.linspace(-6, 6, 61)
POSITIVE = torch.linspace(0.01, 9, 50)
BITS = torch.tensor([True, False, True, True])
COUNTS = torch.tensor([7, -7, 0, 123456789012])

EXPORTS = (
    of("relu_family", lambda x: (F.relu(x), F.relu6(x), F.leaky_relu(x, 0.1), F.elu(x), F.selu(x)), SMALL),
    of("gelu", F.gelu, SMALL),
    of("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), SMALL),
    of("gelu_quick", lambda x: x * torch.sigmoid(1.702 * x), SMALL),
    of("silu_and_mish", lambda x: (F.silu(x), F.mish(x)), SMALL),
    of("hard_activations", lambda x: (F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x)), SMALL),
    of("softplus", F.softplus, SMALL),
    of("sigmoid_and_tanh", lambda x: torch.sigmoid(x) * torch.tanh(x), SMALL),
    of("exponentials", lambda x: (x.exp(), torch.expm1(x), torch.exp2(x)), SMALL),
    of("logarithms", lambda x: (x.log(), torch.log1p(x), x.log2(), x.log10()), POSITIVE),
    of("sine_and_cosine", lambda x: (x.sin(), x.cos()), SMALL * 10),
    of("arc_tangent", lambda x, y: torch.atan2(x, y), SMALL, SMALL.flip(0) + 0.05),
    of("error_function", torch.erf, SMALL),
    of("roots", lambda x: (x.sqrt(), x.rsqrt(), x.reciprocal()), POSITIVE),
    of("powers", lambda x: (x**2, x**3, x**0.5, x**-1.5), POSITIVE),
    of("power_of_arguments", torch.pow, POSITIVE, SMALL[:50]),
    of("square_of_negative", lambda x: x.pow(2) + x.pow(3), SMALL),
    of("rounding", lambda x: (x.floor(), x.ceil(), x.round(), x.trunc()), SMALL * 0.75),
    of("sign_and_magnitude", lambda x: (x.abs(), x.sign(), -x), SMALL),
    of("clamped", lambda x: (x.clamp(-1, 2), x.clamp(min=0.5)), SMALL),
    of("least_and_greatest", lambda x, y: (torch.minimum(x, y), torch.maximum(x, y)), (6, 7), (6, 7)),
    of("quotients", lambda x, y: (x / y, x // y, torch.fmod(x, y)), SMALL, SMALL.flip(0) + 0.05),
    of("broadcast", lambda x, y: x * y + 1, (4, 1, 6), (5, 1)),
    of("comparisons", lambda x, y: (x < y, x >= y, x == x, x != y), (6, 7), (6, 7)),
    of("logic", lambda x, m: (~m & (x > 0), m | (x < 0), m ^ (x > 0)), (4,), BITS),
    of("casts", lambda x: (x.long(), x.int(), x.double(), (x > 0).float()), SMALL),
    of("lerp_and_addcmul", lambda x, y: (torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2)), (9,), (9,)),
    of("integer_arithmetic", lambda i: (i * 3 - 1, i // 2, i % 5, i.abs()), COUNTS),
    of("bits_of_integers", lambda i: (i & 255, i >> 2), COUNTS),
    of("nan_replaced", lambda x: torch.nan_to_num(x / x, nan=4.0), torch.tensor([0.0, 1.0, 2.0])),
    of("long_chain", lambda x: ((x * 1.5 + 2).tanh() - x.exp() * 0.01).clamp(-3, 3).abs().sqrt(), (33, 7)),
)


CUBE = (4, 5, 6)

REDUCTIONS = (
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


def with_statistics(norm: nn.Module) -> nn.Module:
    """Returns a batch norm with running statistics and weights that are not those of the start."""
    norm.running_mean.uniform_(-0.5, 0.5)
    norm.running_var.uniform_(0.5, 1.5)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.uniform_(norm.bias, -0.5, 0.5)
    return norm


CLASSES = torch.tensor([2, 0, 6, 6, 1])

NORMS = (
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
