"""Quantized matmuls of other libraries: ONNX Runtime and OpenVINO.

A library gets the integers, scales and zero points of a problem, packs them in its own way, and multiplies A
by several copies of the weights in turn: one copy stays in the caches, of enough of them each is read from
memory. The copies differ (copy i has its rows rotated by i), so that no library stores two of them once.

    >>> operands = drawn_operands(problem, rng)
    >>> matmul = QuantizedMatmul(BUILDERS["onnxruntime"], problem, operands, threads=1, copies=12)
    >>> matmul.require_right()
    >>> matmul.stopwatch(100)               # seconds per matmul

Each library rounds A in its own way. So a result is compared with the product of A and the weights as the
library has these, and may differ by what such a rounding of A costs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuner.core.errors import TunerError
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import WEIGHTS_COLD, Problem
from tuner.core.quantization import WeightFormat
from tuner.runtime import timing
from tuner.runtime.cpu.cold_caches import COPIES_LIMIT, EVICTING_L3S
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.memory import placed_copy
from tuner.targets.cpu.baseline_libraries import (
    ONNXRUNTIME,
    OPENVINO,
    AbstractQuantizedMatmul,
    imported_openvino,
)

Array = npt.NDArray[Any]
# Relative Frobenius errors that are allowed, by how A is rounded. i8 costs 1 % of Gaussian A, and 6 % by row
# where some columns of A are 15 times as large as the others.
ALLOWED = {"f32": 1e-4, "bf16": 1e-2, "i8": 0.1}
CHANNEL_GROUP = 128  # of A, where the weights have one group; by row OpenVINO would not quantize A at all
# accuracy_level
F32_PRODUCTS = 0
I8_PRODUCTS = 4
ONNX_OPSET = 17
ONNX_IR = 8
QUIET = 3


@dataclass(frozen=True, eq=False)
class BaselineOperands:
    """A and the quantized weights of one matmul, in the layout of ``tuner.core.quantization``."""

    weights: WeightFormat
    a: Array  # (m, k), f32 or bf16
    integers: Array  # (n, k), i8
    scales: Array  # (n, groups), of the format's type
    zero_points: Array | None = None  # (n, groups), i8

    def rotated(self, rows: int) -> "BaselineOperands":
        """Returns operands whose weights' rows (columns of C) are rotated by ``rows``."""
        points = None if self.zero_points is None else np.roll(self.zero_points, rows, 0)
        integers = np.roll(self.integers, rows, 0)
        scales = np.roll(self.scales, rows, 0)
        return replace(self, integers=integers, scales=scales, zero_points=points)

    @property
    def unsigned(self) -> tuple[Array, Array]:
        """Returns (integers, zero points) as u8 shifted to start at 0, as most libraries take them."""
        half = 1 << (self.weights.bits - 1)
        if self.zero_points is None:
            points = np.zeros(self.scales.shape, np.int8)
        else:
            points = self.zero_points
        integers = (self.integers.astype(np.int16) + half).astype(np.uint8)
        return integers, (points.astype(np.int16) + half).astype(np.uint8)

    def product(self, scales: Array | None = None) -> npt.NDArray[np.float32]:
        """Returns A times the dequantized weights, in f32.

        ``scales``: scales to use in place of the operands' exact ones, None: the exact ones.
        """
        n, k = self.integers.shape
        wide = (self.scales if scales is None else scales).astype(np.float32)[..., None]
        groups = self.integers.reshape(n, wide.shape[1], -1).astype(np.float32)
        if self.zero_points is not None:
            groups -= self.zero_points.astype(np.float32)[..., None]
        result: npt.NDArray[np.float32] = self.a.astype(np.float32) @ (groups * wide).reshape(n, k).T
        return result


def drawn_operands(problem: Problem, rng: np.random.Generator) -> BaselineOperands:
    """Returns random operands of a quantized matmul: Gaussian A, integers of all values of their bits."""
    (m, n, k), weights = problem.sizes, WeightFormat.of_text(problem.weights)
    groups = weights.groups(k)
    half = 1 << (weights.bits - 1)
    points = rng.integers(-half, half, (n, groups), np.int8) if weights.has_zero_points else None
    return BaselineOperands(
        weights,
        rng.standard_normal((m, k), np.float32).astype(DTYPES[problem.dtype]),
        rng.integers(-half, half, (n, k), np.int8),
        rng.uniform(0.001, 0.02, (n, groups)).astype(DTYPES[weights.scale_dtype]),
        points,
    )


def copies_needed(problem: Problem, l3_bytes: int) -> int:
    """Returns how many copies of the weights are read in turn: enough to exceed the L3 cache.

    At most COPIES_LIMIT; 1 unless the problem's cache state is "weights-cold".
    """
    if problem.cache != WEIGHTS_COLD:
        return 1
    weight_bytes = WeightFormat.of_text(problem.weights).weight_bytes(*problem.sizes[1:])
    return min(COPIES_LIMIT, 1 + -(-EVICTING_L3S * l3_bytes // weight_bytes))


@dataclass(frozen=True, eq=False)
class BuiltMatmul:
    """A library's matmul, built for all copies of a problem's operands."""

    name: str  # with version, and with what the library does in another way than the problem says
    rounding: str  # of A, one of ALLOWED
    run: Callable[[], object]  # multiplies A by each copy, in order
    results: Callable[[], tuple[Array, ...]]  # the last C of each copy, f32
    scales: Array | None = None  # as the library has them, where these are rounded
    kept: tuple[object, ...] = ()  # whose memory the library reads


@final
class QuantizedMatmul(AbstractQuantizedMatmul):
    """A library's quantized matmul of given operands, with one or more copies of the weights."""

    def __init__(
        self,
        build: "Builder",
        problem: Problem,
        operands: BaselineOperands,
        threads: int,
        copies: int = 1,
    ) -> None:
        """Builds the library's matmul, which packs the weights, and runs it once.

        ``build``: of a library that is installed and takes the problem (``BaselineLibrary.multiplies``).
        Raises TunerError, without the library's name, if the library fails.
        """
        self._operands = operands
        self._copies = copies
        rotations = tuple(map(operands.rotated, range(copies)))
        try:
            self._built = build(problem, rotations, threads)
            self._built.run()
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:  # what the bindings raise
            raise TunerError(f"cannot compute this: {str(error).strip().splitlines()[0]}") from error
        self.name = self._built.name

    def require_right(self) -> float:
        """Compares the results with A times the weights; returns the largest relative Frobenius error.

        Raises TunerError if the error is larger than ALLOWED for the library's rounding of A.
        """
        expected = self._operands.product(self._built.scales)
        size = float(np.linalg.norm(expected))
        worst = 0.0
        for index, result in enumerate(self._built.results()):
            error = float(np.linalg.norm(result - np.roll(expected, index, axis=1))) / size
            allowed = ALLOWED[self._built.rounding]
            if not error <= allowed:
                raise TunerError(f"wrong result: relative error {error:.1e}, allowed {allowed:.0e}")
            worst = max(worst, error)
        return worst

    @property
    def result(self) -> Array:
        """Returns the last product with the first copy, the weights as given, in f32."""
        return self._built.results()[0]

    def run(self) -> None:
        """Multiplies A by each copy of the weights once."""
        self._built.run()

    def stopwatch(self, times: int, clock: timing.Clock = time.perf_counter) -> float:
        """Multiplies at least ``times`` times, by each copy equally often; returns the seconds per matmul."""
        runs = -(-times // self._copies)
        start = clock()
        for _ in range(runs):
            self._built.run()
        return (clock() - start) / (runs * self._copies)


def verified_matmul(
    library: str, problem: Problem, threads: int, rng: np.random.Generator
) -> QuantizedMatmul:
    """Draws operands, and enough copies of the weights for the problem's cache state; returns the matmul.

    ``library``: a key of BUILDERS. Raises TunerError, without the library's name, if the library fails or
    gives a wrong result.
    """
    return verified(BUILDERS[library], problem, threads, rng)


def verified(build: "Builder", problem: Problem, threads: int, rng: np.random.Generator) -> QuantizedMatmul:
    """Returns what ``verified_matmul`` does, of the library that ``build`` builds the matmul of."""
    operands = drawn_operands(problem, rng)
    copies = copies_needed(problem, describe_machine().l3_bytes)
    matmul = QuantizedMatmul(build, problem, operands, threads, copies)
    matmul.require_right()
    return matmul


Copies = tuple[BaselineOperands, ...]


# ONNX Runtime: the operator com.microsoft.MatMulNBits, a node for each copy.
# https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MatMulNBits


def _onnxruntime(problem: Problem, copies: Copies, threads: int) -> BuiltMatmul:
    import onnxruntime

    level = I8_PRODUCTS if copies[0].weights.activations else F32_PRODUCTS
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = QUIET
    model = _onnx_model(problem, copies, level)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    a = placed_copy(copies[0].a.astype(np.float32))
    shape = problem.c_shape
    binding.bind_cpu_input("a", a)
    results = tuple(np.zeros(shape, np.float32) for _ in copies)
    for index, result in enumerate(results):
        binding.bind_output(f"c{index}", "cpu", 0, np.float32, shape, result.ctypes.data)

    def run() -> None:
        session.run_with_iobinding(binding)

    widened = "" if problem.dtype == "f32" else f", f32 for {problem.dtype}"
    name = f"onnxruntime {onnxruntime.__version__} MatMulNBits, accuracy level {level}{widened}"
    return BuiltMatmul(name, "i8" if level == I8_PRODUCTS else "f32", run, lambda: results, kept=(a,))


def _onnx_model(problem: Problem, copies: Copies, level: int) -> bytes:
    import onnx
    from onnx import helper, numpy_helper

    (m, n, k), weights = problem.sizes, copies[0].weights
    of_floats = onnx.TensorProto.FLOAT
    nodes = []
    constants = []
    outputs = []
    for index, copy in enumerate(copies):
        integers, points = copy.unsigned
        blocks = integers.reshape(n, -1, weights.group)
        arrays = {
            "b": _nibbles(blocks) if weights.bits == 4 else blocks,
            "s": copy.scales.astype(np.float32).reshape(-1),
        }
        if weights.has_zero_points:
            arrays["z"] = _nibbles(points) if weights.bits == 4 else points
        constants += [numpy_helper.from_array(array, f"{name}{index}") for name, array in arrays.items()]
        names = ["a", *(f"{name}{index}" for name in arrays)]
        node = helper.make_node(
            "MatMulNBits",
            names,
            [f"c{index}"],
            domain="com.microsoft",
            K=k,
            N=n,
            bits=weights.bits,
            block_size=weights.group,
            accuracy_level=level,
        )
        nodes.append(node)
        outputs.append(helper.make_tensor_value_info(f"c{index}", of_floats, [m, n]))
    inputs = [helper.make_tensor_value_info("a", of_floats, [m, k])]
    graph = helper.make_graph(nodes, "copies", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid("com.microsoft", 1)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=ONNX_IR).SerializeToString()
    return model


def _nibbles(numbers: Array) -> Array:
    """Returns numbers of 4 bits packed two to a byte: that of even index in the low bits.

    An odd last number has a byte of its own.
    """
    if numbers.shape[-1] % 2:
        numbers = np.concatenate((numbers, np.zeros((*numbers.shape[:-1], 1), np.uint8)), axis=-1)
    packed: Array = numbers[..., ::2] | numbers[..., 1::2] << 4
    return packed


# OpenVINO: a matmul by constants that it decompresses itself, with A quantized by group where asked for.


def _openvino(problem: Problem, copies: Copies, threads: int) -> BuiltMatmul:
    openvino = imported_openvino()
    weights = copies[0].weights
    precision = "bf16" if problem.dtype == "bf16" and not weights.activations else "f32"
    group = weights.group or CHANNEL_GROUP
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
        "INFERENCE_PRECISION_HINT": precision,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(group if weights.activations else 0),
    }
    kept: list[Array] = []  # that constants of the model are views of
    model = _openvino_model(problem, copies, kept)
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    a = placed_copy(copies[0].a.astype(np.float32))
    request.set_input_tensor(openvino.Tensor(a, shared_memory=True))

    def run() -> None:
        request.infer(share_outputs=True)

    def results() -> tuple[Array, ...]:
        return tuple(np.array(request.get_output_tensor(number).data) for number in range(len(copies)))

    number = openvino.__version__.partition("-")[0]
    how = f"activations i8 by {group}" if weights.activations else f"in {precision}"
    widened = f", f32 for {problem.dtype}" if problem.dtype != "f32" and precision == "f32" else ""
    rounding = "i8" if weights.activations else precision
    return BuiltMatmul(f"OpenVINO {number} {how}{widened}", rounding, run, results, kept=(a, kept))


def _openvino_model(problem: Problem, copies: Copies, kept: list[Array]) -> Any:
    import openvino
    from openvino import opset13

    def constant(array: Array, shape: tuple[int, ...], element: Any) -> Any:
        kept.append(np.ascontiguousarray(array))
        return openvino.op.Constant(openvino.Tensor(kept[-1].reshape(-1), openvino.Shape(shape), element))

    (m, n, k), weights = problem.sizes, copies[0].weights
    kinds = openvino.Type
    parameter = opset13.parameter([m, k], np.float32, name="a")
    outputs = []
    scale_dtype = "f16" if weights.scale_dtype == "f16" else "f32"
    shape = (n, weights.groups(k), k // weights.groups(k))
    for copy in copies:
        integers, points = copy.unsigned
        if not weights.has_zero_points:  # signed, which has no zero point
            integers = copy.integers.view(np.uint8) & np.uint8(0x0F if weights.bits == 4 else 0xFF)
        if weights.bits == 4:
            kind = kinds.u4 if weights.has_zero_points else kinds.i4
            number = constant(_nibbles(integers.reshape(-1)), shape, kind)
        else:
            kind = kinds.u8 if weights.has_zero_points else kinds.i8
            number = constant(integers if weights.has_zero_points else copy.integers, shape, kind)
        wide = opset13.convert(number, scale_dtype)
        if weights.has_zero_points:
            stored = _nibbles(points.reshape(-1)) if weights.bits == 4 else points
            point = opset13.convert(constant(stored, (*shape[:2], 1), kind), scale_dtype)
            wide = opset13.subtract(wide, point)
        scales = opset13.constant(copy.scales.astype(DTYPES[scale_dtype])[..., None])
        flat = opset13.reshape(opset13.multiply(wide, scales), np.array([n, k], np.int64), False)
        outputs.append(opset13.matmul(parameter, opset13.convert(flat, "f32"), False, True))
    return openvino.Model(list(map(opset13.result, outputs)), [parameter], "copies")


Builder = Callable[[Problem, Copies, int], BuiltMatmul]  # (problem, operands by copy, threads)
BUILDERS: dict[str, Builder] = {ONNXRUNTIME: _onnxruntime, OPENVINO: _openvino}
