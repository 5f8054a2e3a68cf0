"""Quantized matmuls of zentorch, AMD's extension of torch, and of torch's own operators, for comparison.

They are no baselines of tuner: zentorch keeps what it packs by the address of the weights, and computes with
those in a process that has freed others, so a process makes one ``QuantizedMatmul`` of it; torch's i8
operator crashes where weights do not begin at a cache line (docs/decisions/libraries.md). An entry point of
the group ``tuner.baselines``, such as ``benchmarks.quantized_rivals:TORCH_LIBRARY``, makes one a baseline.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final, final

import ml_dtypes
import numpy as np

from tuner.core.problem import Problem
from tuner.core.quantization import WeightFormat
from tuner.models.quantized.quantized_baselines import (
    Array,
    Builder,
    BuiltMatmul,
    Copies,
    QuantizedMatmul,
    verified,
)
from tuner.runtime.cpu.memory import placed_copy
from tuner.targets.cpu.baseline_libraries import BaselineLibrary, WeightSupport

ZENTORCH = "zentorch"
TORCH_INT4PACK = "torch-int4pack"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
PACKED_GROUPS = (32, 64, 128, 256)  # of torch's int4pack
PACKED_COLUMNS = 16  # what n is a multiple of, there


@final
class ZentorchWeights(WeightSupport):
    """zentorch: weights without zero points, i4 by group or i8 by channel.

    Of i4, scales are not f32, and A is bf16 or quantized to i8; of i8, A is quantized to i8.
    """

    def takes(self, problem: Problem, weights: WeightFormat) -> bool:
        is_scale = weights.scale_dtype != "f32" or weights.bits == 8
        if weights.bits == 4:
            is_group = bool(weights.group)
        else:
            is_group = not weights.group and bool(weights.activations)
        is_width = bool(weights.activations) or problem.dtype == "bf16"
        return is_scale and is_group and is_width and not weights.has_zero_points


@final
class TorchPack(WeightSupport):
    """PyTorch's int4pack and int8pack, for A in bf16; of f32 it has a loop that is 50 times slower."""

    def takes(self, problem: Problem, weights: WeightFormat) -> bool:
        if problem.dtype != "bf16" or weights.activations or weights.scale_dtype == "f32":
            return False
        if weights.bits == 8:
            return not weights.group and not weights.has_zero_points
        return weights.group in PACKED_GROUPS and problem.sizes[1] % PACKED_COLUMNS == 0


def _torch_int4pack(problem: Problem, copies: Copies, threads: int) -> BuiltMatmul:
    import torch

    torch.set_num_threads(threads)
    name = f"torch {torch.__version__} {{}}, bf16 result"
    if copies[0].weights.bits == 8:
        of_rows = [(_tensor(copy.integers), _bf16(copy.scales.reshape(-1))) for copy in copies]
        multiply = torch.ops.aten._weight_int8pack_mm  # noqa: SLF001 - the only name it has
        return _by_torch(problem, copies, name.format("int8pack"), multiply, of_rows)
    group = copies[0].weights.group
    packed = []
    for copy in copies:
        integers = _tensor(copy.unsigned[0].astype(np.int32))
        scales = _bf16(copy.scales)
        points = 0 if copy.zero_points is None else _tensor(copy.zero_points)
        pairs = torch.stack((scales, (-points * scales.float()).bfloat16()), -1)  # w = (u - 8) scale + zero
        convert = torch.ops.aten._convert_weight_to_int4pack_for_cpu  # noqa: SLF001
        packed.append((convert(integers, 1), group, pairs.transpose(0, 1).contiguous()))
    multiply = torch.ops.aten._weight_int4pack_mm_for_cpu  # noqa: SLF001
    return _by_torch(problem, copies, name.format("int4pack"), multiply, packed)


def _zentorch(problem: Problem, copies: Copies, threads: int) -> BuiltMatmul:
    import torch

    import_module(ZENTORCH)  # adds operators; in no extra, as each release needs one release of torch
    torch.set_num_threads(threads)
    operators = torch.ops.zentorch
    weights = copies[0].weights
    number = version(ZENTORCH)
    if weights.bits == 8:
        # not by its prepack, whose results of k = 4096 and more are wrong in 2.13.0.2
        of_rows = [
            (_tensor(copy.integers), _tensor(copy.scales.reshape(-1).astype(np.float32)), None)
            for copy in copies
        ]
        name = f"zentorch {number} dynamic_qlinear, activations i8 by row"
        multiply = operators.zentorch_dynamic_qlinear
        return _by_torch(problem, copies, f"{name}, bf16 result", multiply, of_rows, is_scale_exact=True)
    repacked = [operators.zentorch_woq_repack_weight(_tensor(copy.integers)) for copy in copies]
    scales = [_bf16(copy.scales).transpose(0, 1).contiguous() for copy in copies]
    if weights.activations:
        by_group = [(weight, scale, None) for weight, scale in zip(repacked, scales, strict=True)]
        name = f"zentorch {number} dynamic_qlinear, activations i8 by row, bf16 result"
        return _by_torch(problem, copies, name, operators.zentorch_dynamic_qlinear, by_group)
    pairs = zip(repacked, scales, strict=True)
    only = [(weight.transpose(0, 1), scale, None, None) for weight, scale in pairs]
    return _by_torch(
        problem, copies, f"zentorch {number} woq_linear, bf16 result", operators.zentorch_woq_linear, only
    )


def _by_torch(
    problem: Problem,
    copies: Copies,
    name: str,
    multiply: Callable[..., Any],
    packed: list[tuple[Any, ...]],
    *,
    is_scale_exact: bool = False,
) -> BuiltMatmul:
    """Returns calls ``multiply(a, *weights)`` of bf16 A for each copy's packed weights."""
    import torch

    a = _bf16(copies[0].a)
    outputs: list[Any] = [None] * len(packed)

    def run() -> None:
        with torch.inference_mode():
            for index, arguments in enumerate(packed):
                outputs[index] = multiply(a, *arguments)

    def results() -> tuple[Array, ...]:
        return tuple(output.float().numpy() for output in outputs)

    weights = copies[0].weights
    if problem.dtype != "bf16":
        name += f", bf16 for {problem.dtype}"
    is_rounded = not is_scale_exact and weights.scale_dtype != "bf16"
    rounded = copies[0].scales.astype(BFLOAT16) if is_rounded else None
    return BuiltMatmul(
        name + (", bf16 scales" if is_rounded else ""),
        "i8" if weights.activations else "bf16",
        run,
        results,
        rounded,
    )


def _tensor(array: Array) -> Any:
    import torch

    return torch.from_numpy(placed_copy(array))  # at cache lines, as torch does: int8pack crashes at others


def _bf16(array: Array) -> Any:
    import torch

    return _tensor(array.astype(BFLOAT16).view(np.int16)).view(torch.bfloat16)


BUILDERS: Final[dict[str, Builder]] = {ZENTORCH: _zentorch, TORCH_INT4PACK: _torch_int4pack}


def verified_rival(library: str, problem: Problem, threads: int, rng: np.random.Generator) -> QuantizedMatmul:
    """Returns the matmul of ``library``, a key of BUILDERS, as ``verified_matmul`` does of a baseline."""
    return verified(BUILDERS[library], problem, threads, rng)


OF_RIVALS = partial(BaselineLibrary, (), quantized="benchmarks.quantized_rivals:verified_rival")
ZENTORCH_LIBRARY = OF_RIVALS(
    "pip install zentorch", recorded="zentorch ", modules=("zentorch", "torch"), weights=ZentorchWeights()
)
TORCH_LIBRARY = OF_RIVALS("pip install torch", recorded="torch ", modules=("torch",), weights=TorchPack())
RIVALS: Final = {ZENTORCH: ZENTORCH_LIBRARY, TORCH_INT4PACK: TORCH_LIBRARY}
