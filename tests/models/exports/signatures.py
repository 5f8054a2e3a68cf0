"""Exports whose arguments and results are unusual, and other element types than f32."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.models.exports.attention import Attention
from tests.models.exports.export import export, of
from tests.models.exports.linear import mlp


class Dequantized(nn.Module):
    """A linear layer with weights of 8 bits and a scale for each row."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (outer, inner), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(outer, 1) / 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight.to(x.dtype) * self.scale)


class QuantizedLinear(nn.Module):
    """A linear layer of bytes: numbers are quantized, multiplied into i32, and scaled for each column."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (outer, inner), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(outer) / 1000)
        self.bias = nn.Parameter(torch.randn(outer))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        quantized = (x * 32).round().clamp(-128, 127).to(torch.int8)
        sums = torch._int_mm(quantized, self.weight.t())  # noqa: SLF001 - the only product of i8
        return F.relu(sums.float() * self.scale + self.bias)


def bytes_of(*shape: int) -> torch.Tensor:
    """Returns numbers of 8 bits, the same ones each time."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(-127, 128, shape, dtype=torch.int8, generator=generator)


BF16, F16, F64 = torch.bfloat16, torch.float16, torch.float64

EXPORTS = (
    of("scalar_tensor", lambda x, s: x * s, (4, 5), torch.tensor(2.5)),
    of("scalars_only", lambda a, b: (a + b, a < b), torch.tensor(2.5), torch.tensor(-1.0)),
    of("scalar_integer", lambda x, n: x + n, (4, 5), torch.tensor(3)),
    of("scalar_result", lambda x: (x * x).sum().sqrt(), (4, 5)),
    of("several_results", lambda x: (x + 1, x.sum(-1), x.T, x > 0), (4, 5)),
    of("result_twice", lambda x: (x.exp(),) * 2, (4, 5)),
    of("result_is_an_input", lambda x, y: (x, x + y), (4, 5), (4, 5)),
    of("result_is_the_input", lambda x: x, (4, 5)),
    of("result_is_a_view", lambda x: (x.view(20), x[1:3]), (4, 5)),
    of("constant_result", lambda x: (x * 2, torch.ones(3)), (4, 5)),
    of("unused_input", lambda x, y: x + 1, (4, 5), (3,)),
    of("input_twice", lambda x, y: (x @ y.T, y - x), (4, 5), (4, 5)),
    of("many_inputs", lambda *xs: torch.stack(xs).sum(0), *((3, 4),) * 9),
    of("no_elements", lambda x: x * 2 + 1, (0, 5)),
    of("sum_of_no_elements", lambda x: x.sum(-1), (4, 0)),
    of("five_dims", lambda x: x.transpose(1, 3).relu() * 2, (2, 3, 2, 4, 5)),
    export("linear_f64", lambda: nn.Linear(24, 16), (8, 24), dtype=F64),
    export("linear_bf16", lambda: nn.Linear(32, 48), (16, 32), dtype=BF16),
    export("mlp_bf16", lambda: mlp(32, 64, 16), (8, 32), dtype=BF16),
    export("layer_norm_bf16", lambda: nn.LayerNorm(40), (6, 40), dtype=BF16),
    export("attention_bf16", lambda: Attention(32, 4, "sdpa"), (1, 12, 32), dtype=BF16),
    of("softmax_bf16", lambda x: torch.softmax(x, -1), (6, 40), dtype=BF16),
    of("gelu_bf16", F.gelu, (6, 40), dtype=BF16),
    export("linear_f16", lambda: nn.Linear(32, 48), (16, 32), dtype=F16),
    export("conv_f16", lambda: nn.Conv2d(4, 8, 3, padding=1), (1, 4, 9, 9), dtype=F16),
    of("softmax_f16", lambda x: torch.softmax(x, -1), (6, 40), dtype=F16),
    of("casts_to_half_and_back", lambda x: (x.half().float(), x.bfloat16().float()), (6, 40)),
    of("mixed_precision", lambda x, y: x.float() @ y.float(), (8, 16), (16, 8), dtype=BF16),
    of("matmul_i8", lambda a, b: torch.matmul(a.int(), b.int()), bytes_of(8, 24), bytes_of(24, 16)),
    of("int_mm", torch._int_mm, bytes_of(8, 24), bytes_of(24, 16)),  # noqa: SLF001 - as above
    export("quantized_linear", lambda: QuantizedLinear(24, 16), (8, 24)),
    of("sum_i8", lambda a: a.sum(-1), bytes_of(8, 24)),
    of("relu_i8", lambda a: a.clamp(min=0), bytes_of(8, 24)),
    export("dequantized_linear", lambda: Dequantized(24, 16), (8, 24)),
    of("quantized_and_back", lambda x: (x / 0.05).round().clamp(-128, 127).char().float() * 0.05, (8, 24)),
)
