"""Models as torch-mlir exports them: the fusions that they become, and what these compute."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed, host_function

WHY = "torch is not installed: it makes the exports that these tests group"
torch: Any = pytest.importorskip("torch", reason=WHY)
fx: Any = pytest.importorskip("torch_mlir.fx", reason=WHY)
nn: Any = torch.nn
functional: Any = torch.nn.functional

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]


def mlp(*sizes: int) -> Any:
    layers: list[Any] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Computed(nn.Module):  # type: ignore[misc]
    """A module whose parts are given, and whose result a function computes of them."""

    def __init__(self, compute: Any, **parts: Any) -> None:
        super().__init__()
        self.compute = compute
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.compute(self, *inputs)


def rms_norm(x: Any, weight: Any) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def llama_mlp(m: Any, x: Any) -> Any:
    y = rms_norm(x, m.weight)
    return x + m.down(functional.silu(m.gate(y)) * m.up(y))


def heads_of(qkv: Any, heads: int) -> Any:
    batch, length, _ = qkv.shape
    return (each.view(batch, length, heads, -1).transpose(1, 2) for each in qkv.chunk(3, -1))


def encoder(m: Any, x: Any) -> Any:
    q, k, v = heads_of(m.qkv(m.n1(x)), 4)
    scores = (q @ k.transpose(-2, -1)) * 0.25
    x = x + m.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(x.shape))
    return x + m.f2(functional.gelu(m.f1(m.n2(x))))


def transformer(size: int, ff: int) -> dict[str, Any]:
    return {
        "n1": nn.LayerNorm(size),
        "n2": nn.LayerNorm(size),
        "qkv": nn.Linear(size, 3 * size),
        "out": nn.Linear(size, size),
        "f1": nn.Linear(size, ff),
        "f2": nn.Linear(ff, size),
    }


def residual_block(m: Any, x: Any) -> Any:
    return functional.relu(x + m.b2(m.c2(functional.relu(m.b1(m.c1(x))))))


def causal(m: Any, tokens: Any) -> Any:
    """Embedding, one causal attention, and the logits."""
    x = m.table(tokens) + m.positions
    q, k, v = heads_of(m.qkv(m.n1(x)), 4)
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    scores = (q @ k.transpose(-2, -1)).masked_fill(~mask, float("-inf"))
    x = x + m.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
    return m.head(x)


def patches(m: Any, x: Any) -> Any:
    """The first layers of a vision transformer, and the mean of all patches."""
    x = m.c(x).flatten(2).transpose(1, 2)
    x = torch.cat([m.first.expand(x.shape[0], -1, -1), x], 1) + m.positions
    return m.head(m.n(x).mean(1))


def with_cache(m: Any, x: Any, keys: Any, values: Any) -> Any:
    """One step of decoding; the caches are arguments and results."""
    q, k, v = heads_of(m.qkv(x), 4)
    keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
    y = functional.scaled_dot_product_attention(q, keys, values)
    return m.out(y.transpose(1, 2).reshape(x.shape)), keys, values


def pooled(m: Any, x: Any) -> Any:
    x = functional.max_pool2d(functional.relu(m.c(x)), 2)
    return functional.log_softmax(m.f(functional.adaptive_avg_pool2d(x, 1).flatten(1)), -1)


def batch_norm(size: int) -> Any:
    norm = nn.BatchNorm2d(size)
    norm.running_mean.uniform_(-0.2, 0.2)
    norm.running_var.uniform_(0.5, 1.5)
    return norm


def convolution(size: int) -> Any:
    return nn.Conv2d(size, size, 3, padding=1, bias=False)


LETTERS = {"contraction": "C", "convolution": "V", "rows": "R", "elementwise": "E", "loops": "L"}
# The module, the shapes of the inputs, the kinds of the fusions
MODELS: dict[str, tuple[Any, tuple[tuple[int, ...], ...], str]] = {
    "mlp": (lambda: mlp(64, 128, 128, 32), ((32, 64),), "CCC"),
    "mlp of one row": (lambda: mlp(8, 16, 4), ((1, 8),), "CC"),
    "llama": (
        lambda: Computed(
            llama_mlp,
            weight=nn.Parameter(torch.rand(16) + 0.5),
            gate=nn.Linear(16, 24, bias=False),
            up=nn.Linear(16, 24, bias=False),
            down=nn.Linear(24, 16, bias=False),
        ),
        ((8, 16),),
        "RCC",
    ),
    "encoder": (lambda: Computed(encoder, **transformer(16, 32)), ((1, 8, 16),), "RCECRCCRCC"),
    "encoder of two": (lambda: Computed(encoder, **transformer(16, 32)), ((2, 8, 16),), "RCEEECRCECRCC"),
    "residual": (
        lambda: Computed(
            residual_block, c1=convolution(4), b1=batch_norm(4), c2=convolution(4), b2=batch_norm(4)
        ),
        ((1, 4, 8, 8),),
        "EVV",
    ),
    "causal": (
        lambda: Computed(
            causal,
            table=nn.Embedding(20, 16),
            positions=nn.Parameter(torch.randn(6, 16)),
            head=nn.Linear(16, 20, bias=False),
            **transformer(16, 32),
        ),
        ((1, 6),),
        "LERCECRCCC",
    ),
    "patches": (
        lambda: Computed(
            patches,
            c=nn.Conv2d(3, 8, 4, stride=4),
            first=nn.Parameter(torch.randn(1, 1, 8)),
            positions=nn.Parameter(torch.randn(1, 5, 8)),
            n=nn.LayerNorm(8),
            head=nn.Linear(8, 3),
        ),
        ((2, 3, 8, 8),),
        "VEERLEC",
    ),
    "cache": (
        lambda: Computed(with_cache, qkv=nn.Linear(16, 48), out=nn.Linear(16, 16)),
        ((1, 1, 16), (1, 4, 5, 4), (1, 4, 5, 4)),
        "CEEEEEECRCC",
    ),
    "pooled": (
        lambda: Computed(pooled, c=nn.Conv2d(3, 8, 3, padding=1, stride=2), f=nn.Linear(8, 5)),
        ((1, 3, 12, 12),),
        "EVLRCR",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_fusions_of_a_model_are_as_expected_and_compute_what_the_model_computes(name: str) -> None:
    make, shapes, kinds = MODELS[name]
    torch.manual_seed(0)
    module = make().eval()
    inputs = [torch.randn(*shape) for shape in shapes]
    if name == "causal":
        inputs = [torch.arange(6)[None]]
    with torch.no_grad():
        exported = fx.export_and_import(
            module, *inputs, output_type="linalg-on-tensors", func_name="main"
        ).operation.get_asm()
        wanted = module(*inputs)
    program = formed(exported)
    assert "".join(LETTERS[fusion.kind] for fusion in program.program.fusions) == kinds
    arrays = [each.numpy() for each in inputs]
    whole = host_function(exported)(*arrays)
    fusions = FusedFunction(program)
    fusions(*arrays)
    tuples = [each if isinstance(each, tuple) else (each,) for each in (fusions(*arrays), whole, wanted)]
    for found, today, torchs in zip(*tuples, strict=True):
        np.testing.assert_allclose(found, today, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found, torchs.numpy(), rtol=1e-4, atol=1e-5)


def test_layers_of_one_shape_are_one_task() -> None:
    torch.manual_seed(0)
    module = mlp(16, 16, 16, 16, 16).eval()
    with torch.no_grad():
        exported = fx.export_and_import(
            module, torch.randn(4, 16), output_type="linalg-on-tensors", func_name="main"
        ).operation.get_asm()
    texts = [fusion.text for fusion in formed(exported).program.fusions]
    assert len(texts) == 4
    assert len(set(texts)) == 2  # the last one has no relu
