"""Quantized models keep their integers: results of eager, weights of 4 or 8 bits also in the folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.fusions import CONTRACTION, QUANTIZED
from tuner.mlir.fusions.facts import facts_of

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402 - after the skip
from tuner.core.matmul import Matmul  # noqa: E402
from tuner.mlir.fusions.facts import fusion_problem  # noqa: E402
from tuner.models.fusions.pipeline import FormedProgram, fuse_program  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402
from tuner.models.torch.packed_nibbles import PACKED, TILES, unpacked  # noqa: E402
from tuner.models.torch.quantized_layers import rounded_rows  # noqa: E402

F32, BF16 = torch.float32, torch.bfloat16
TOLERANCE = {F32: 2e-6, BF16: 1e-2}  # of the greatest magnitude: sums of f32; weights rounded to bf16
N, K, GROUP = 128, 256, 64


class Dequantized(nn.Module):
    """A linear layer by a function of buffers; ``weight``: makes the matrix of them."""

    def __init__(self, weight: Callable[[Any], Any], **buffers: Any) -> None:
        super().__init__()
        self.weight = weight
        for name, each in buffers.items():
            self.register_buffer(name, each)

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.linear(x, self.weight(self).to(x.dtype))


def integers(*shape: int, low: int = -8, high: int = 7) -> Any:
    return torch.randint(low, high + 1, shape, dtype=torch.int8)


def by_group(q: Any, scales: Any) -> Any:
    n, k = q.shape
    return (q.float().reshape(n, scales.shape[1], -1) * scales.float()[:, :, None]).reshape(n, k)


def layer(n: int = N, k: int = K, group: int = GROUP, dtype: Any = F32, **limits: int) -> Dequantized:
    q, scales = integers(n, k, **limits), torch.rand(n, k // group).to(dtype) + 0.5
    return Dequantized(lambda own: by_group(own.q, own.s), q=q, s=scales)


def rows(m: int = 3, k: int = K, dtype: Any = F32) -> Any:
    return torch.randn(m, k).to(dtype)


def formed_of(module: Any, *inputs: Any) -> FormedProgram:
    formed = fuse_program(export_module(module, inputs).text)
    assert isinstance(formed, FormedProgram)
    return formed


def formats(module: Any, *inputs: Any) -> list[str]:
    formed = formed_of(module, *inputs)
    return [facts_of(each.text).weights_format for each in formed.program.fusions if each.kind == QUANTIZED]


def require_equal(module: Any, x: Any) -> Any:
    """Compiles a module, compares its result with eager's, and returns the program."""
    program = tuner.torch.compile(module, (x,))
    expected = module(x)
    limit = TOLERANCE[x.dtype] * expected.abs().max().item()
    assert program(x).dtype is expected.dtype
    torch.testing.assert_close(program(x), expected, rtol=0, atol=limit)
    return program


FORMS: dict[str, tuple[Callable[[], Any], str]] = {
    "by group": (layer, "i4-g64-f32"),
    "scales of f16": (lambda: layer(dtype=torch.float16), "i4-g64-f16"),
    "ragged": (lambda: layer(n=37), "i4-g64-f32"),
    "groups of 16, which nibbles do not have": (lambda: layer(group=16), "i8-g16-f32"),
    "per channel": (lambda: layer(group=K), "i4-channel-f32"),
    "one scale for all rows": (
        lambda: Dequantized(
            lambda own: (own.q.float().reshape(N, 4, GROUP) * own.s[None, :, None]).reshape(N, K),
            q=integers(N, K),
            s=torch.rand(4) + 0.5,
        ),
        "i4-g64-f32",
    ),
    "k x n": (
        lambda: Dequantized(
            lambda own: (own.q.float().reshape(4, GROUP, N) * own.s[:, None, :]).reshape(K, N).t(),
            q=integers(K, N),
            s=torch.rand(4, N) + 0.5,
        ),
        "i4-g64-f32",
    ),
    "groups first": (
        lambda: Dequantized(
            lambda own: (own.q.float() * own.s[:, :, None]).permute(1, 0, 2).reshape(N, K),
            q=integers(4, N, GROUP),
            s=torch.rand(4, N) + 0.5,
        ),
        "i4-g64-f32",
    ),
    "zero points": (
        lambda: Dequantized(
            lambda own: (
                (own.q.float().reshape(N, 4, GROUP) - own.z.float()[:, :, None]) * own.s[:, :, None]
            ).reshape(N, K),
            q=integers(N, K),
            s=torch.rand(N, 4) + 0.5,
            z=integers(N, 4),
        ),
        "i4-g64-f32-zp",
    ),
    "zero points per channel, subtracted as i32": (
        lambda: Dequantized(
            lambda own: (
                (own.q.int() - own.z.int()[:, None]).float().reshape(N, 4, GROUP) * own.s[:, :, None]
            ).reshape(N, K),
            q=integers(N, K),
            s=torch.rand(N, 4) + 0.5,
            z=integers(N),
        ),
        "i4-g64-f32-zp",
    ),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", FORMS)
def test_a_dequantized_weight_stays_integers_and_gives_the_result_of_eager(form: str) -> None:
    torch.manual_seed(0)
    make, expected = FORMS[form]
    module = make().eval()
    program = require_equal(module, rows())
    assert [each.kind for each in program.function.code.fusions] == [QUANTIZED]
    assert [each.strategy for each in program.function.code.fusions] == ["matmul_cpu_quantized"]
    assert formats(module, rows()) == [expected]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("m", [1, 4, 17])
def test_rows_of_bf16_are_multiplied_by_integers_and_the_result_is_rounded_in_the_kernel(m: int) -> None:
    torch.manual_seed(1)
    module, x = layer(dtype=BF16).eval(), rows(m, dtype=BF16)
    program = require_equal(module, x)
    assert [each.kind for each in program.function.code.fusions] == [QUANTIZED]
    assert formats(module, x) == ["i4-g64-bf16"]


ROUNDED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "groups of the weights": (lambda x: rounded_rows(x, GROUP), "i4-g64-f32-a8group"),
    "other groups": (lambda x: rounded_rows(x, 32), "i4-g64-f32"),
    "in another way": (lambda x: (x * 8).round().to(torch.int8).float() / 8, "i4-g64-f32"),
    "with another scale": (lambda x: rounded_rows(x, GROUP) * 2, "i4-g64-f32"),
    "another tensor's scale": (lambda x: rounded_rows(x, GROUP) + x, "i4-g64-f32"),
}


class RoundedLayer(nn.Module):
    def __init__(self, rounding: Callable[[Any], Any]) -> None:
        super().__init__()
        self.rounding = rounding
        self.layer = layer()

    def forward(self, x: Any) -> Any:
        return self.layer(self.rounding(torch.nn.functional.silu(x)))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", ROUNDED)
def test_rows_that_are_rounded_to_i8_are_multiplied_as_integers(form: str) -> None:
    torch.manual_seed(12)
    rounding, expected = ROUNDED[form]
    module, x = RoundedLayer(rounding).eval(), torch.randn(2, 3, K)
    x[0, 1, :GROUP] = 0
    assert formats(module, x) == [expected]
    require_equal(module, x)


def test_weights_take_half_a_byte_each_also_in_the_exported_folder(tmp_path: Path) -> None:
    torch.manual_seed(2)
    module, x = layer(256, 1024, 128).eval(), rows(2, 1024)
    program = require_equal(module, x)
    expected = 256 * 1024 // 2 + 4 * 256 * 8
    assert program.function.code.weights_bytes == expected
    program.export(tmp_path / "layer")
    assert (tmp_path / "layer" / "weights.npy").stat().st_size < expected + 1024
    np.save(tmp_path / "x.npy", x.numpy())
    script = (
        f"import sys, numpy, tuner; folder = {str(tmp_path)!r}\n"
        "numpy.save(folder + '/y.npy', tuner.load(folder + '/layer')(numpy.load(folder + '/x.npy')))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert np.array_equal(np.load(tmp_path / "y.npy"), program(x).numpy())


def test_integers_that_4_bits_do_not_hold_take_8() -> None:
    torch.manual_seed(3)
    module = layer(low=-8, high=8).eval()
    module.q[0, 0] = 8
    program = require_equal(module, rows())
    assert formats(module, rows()) == ["i8-g64-f32"]
    assert program.function.code.weights_bytes >= N * K


def test_zero_points_that_are_all_0_are_not_multiplied() -> None:
    torch.manual_seed(4)
    make, _ = FORMS["zero points"]
    module = make().eval()
    module.z.zero_()
    require_equal(module, rows())
    assert formats(module, rows()) == ["i4-g64-f32"]


def test_a_bias_and_an_activation_after_the_product_are_fusions_of_their_own() -> None:
    torch.manual_seed(5)
    bias = torch.randn(N)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = layer()
            self.bias = torch.nn.Parameter(bias)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.linear(x) + self.bias)

    program = require_equal(Layer().eval(), torch.randn(2, 3, K))
    assert [each.kind for each in program.function.code.fusions] == [QUANTIZED, "elementwise"]


class Between(nn.Module):
    """Slices and transposes before quantized layers, and a concatenation after."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = layer(), layer()

    def forward(self, x: Any) -> Any:
        turned = x[:, :8].t().repeat(1, K // x.shape[0])
        return torch.cat([self.first(x[:, :K]), self.second(x[:, K:])], -1), self.first(turned)


@pytest.mark.slow
def test_rows_and_results_that_are_not_contiguous_are_copied() -> None:
    torch.manual_seed(6)
    module, x = Between().eval(), rows(4, 2 * K)
    program = tuner.torch.compile(module, (x,))
    for found, expected in zip(program(x), module(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    code: Any = program.function
    assert [each.kind for each in code.code.fusions].count(QUANTIZED) == 3


LEFT: dict[str, Callable[[], Any]] = {
    "a scale for each column of A": lambda: Dequantized(
        lambda own: own.q.float() * own.s, q=integers(N, K), s=torch.rand(K)
    ),
    "groups of 8": lambda: layer(group=8),
    "a weight rounded to bf16 before a product of f32": lambda: Dequantized(
        lambda own: by_group(own.q, own.s).bfloat16().float(), q=integers(N, K), s=torch.rand(N, 4)
    ),
    "differences that wrap around in i8": lambda: Dequantized(
        lambda own: by_group(own.q - own.z[:, None], own.s),
        q=integers(N, K, low=-128, high=127),
        z=integers(N, low=-128, high=127),
        s=torch.rand(N, 4),
    ),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("form", LEFT)
def test_other_weights_are_folded_to_floats_and_right(form: str) -> None:
    torch.manual_seed(7)
    module = LEFT[form]().eval()
    require_equal(module, rows())
    assert formats(module, rows()) == []


def test_a_fusion_is_the_problem_that_is_tuned_alone() -> None:
    formed = formed_of(layer().eval(), rows())
    (fusion,) = formed.program.fusions
    alone = Matmul(3, N, K, "f32", weights="i4", group_size=GROUP, scale_dtype="f32")
    assert fusion_problem(fusion) == alone
    narrow = formed_of(layer(dtype=BF16).eval(), rows(dtype=BF16))
    expected = Matmul(3, N, K, "bf16", weights="i4", group_size=GROUP, scale_dtype="bf16", output="bf16")
    assert [fusion_problem(each) for each in narrow.program.fusions] == [expected]


class PackedBytes(nn.Module):
    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.register_buffer("q", integers(N, K, low=-128, high=127))
        self.register_buffer("s", (torch.rand(N) * 0.01).to(dtype))

    def forward(self, x: Any) -> Any:
        return torch.ops.aten._weight_int8pack_mm(x, self.q, self.s)  # noqa: SLF001 - as models call it


class PackedNibbles(nn.Module):
    def __init__(self, n: int, dtype: Any) -> None:
        super().__init__()
        self.register_buffer("q", PACKED(torch.randint(0, 16, (n, K), dtype=torch.int32), TILES))
        self.register_buffer("s", (torch.rand(K // GROUP, n, 2) * 0.01).to(dtype))

    def forward(self, x: Any) -> Any:
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.q, GROUP, self.s)  # noqa: SLF001


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_products_by_packed_bytes_are_quantized_matmuls(dtype: Any) -> None:
    torch.manual_seed(8)
    module, x = PackedBytes(dtype).eval(), rows(dtype=dtype)
    program = require_equal(module, x)
    assert [each.kind for each in program.function.code.fusions] == [QUANTIZED]
    assert formats(module, x) == [f"i8-channel-{'f32' if dtype is F32 else 'bf16'}"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_products_by_packed_nibbles_are_quantized_matmuls_and_a_product_of_zeros(dtype: Any) -> None:
    torch.manual_seed(9)
    module, x = PackedNibbles(N, dtype).eval(), rows(dtype=dtype)
    packed = module.q.clone()
    program = require_equal(module, x)
    kinds = [each.kind for each in program.function.code.fusions]
    assert kinds.count(QUANTIZED) == kinds.count(CONTRACTION) == 1
    assert program.function.code.weights_bytes < N * K * 0.75
    assert torch.equal(module.q, packed)
    exported = torch.export.export(module, (x,))
    assert torch.equal(tuner.torch.compile(exported)(x), program(x))
    assert exported.state_dict["q"].dtype is torch.uint8


@pytest.mark.parametrize(("n", "k"), [(16, 32), (64, 64), (80, 32), (144, 96)])
def test_nibbles_are_unpacked_as_pytorch_packed_them(n: int, k: int) -> None:
    torch.manual_seed(10)
    numbers = torch.randint(0, 16, (n, k), dtype=torch.int32)
    assert torch.equal(unpacked(PACKED(numbers, TILES)), numbers.to(torch.int8) - 8)


TORCHAO = {
    ("intx4", F32): ["i4-g64-f32"],
    ("intx4", BF16): ["i4-g64-bf16"],
    ("int8", F32): ["i8-channel-f32"],
    ("int8 by group", F32): ["i8-g64-f32"],
    ("dynamic int8", F32): [],  # the product of i8 into i32 that it was
    ("dynamic intx4", F32): ["i4-g64-f32"],
}


@pytest.mark.parametrize(("config", "dtype"), TORCHAO)
def test_models_that_torchao_quantized_keep_their_bits(config: str, dtype: Any) -> None:
    quantization = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    granularity = pytest.importorskip("torchao.quantization.granularity")
    from torchao.utils import unwrap_tensor_subclass  # type: ignore[import-not-found]

    group = granularity.PerGroup(GROUP)
    nibbles = {"weight_dtype": torch.int4, "granularity": group}
    configs = {
        "intx4": lambda: quantization.IntxWeightOnlyConfig(**nibbles),
        "int8": quantization.Int8WeightOnlyConfig,
        "int8 by group": lambda: quantization.Int8WeightOnlyConfig(granularity=group),
        "dynamic int8": quantization.Int8DynamicActivationInt8WeightConfig,
        "dynamic intx4": lambda: quantization.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=group
        ),
    }
    torch.manual_seed(11)
    module = torch.nn.Sequential(torch.nn.Linear(K, N, bias=False)).to(dtype).eval()
    quantization.quantize_(module, configs[config]())
    module, x = unwrap_tensor_subclass(module), rows(dtype=dtype)
    program = require_equal(module, x)
    assert formats(module, x) == TORCHAO[config, dtype]
    assert program.function.code.weights_bytes < N * K * 1.3
