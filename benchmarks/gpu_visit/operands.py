"""Operands of one problem on the GPU, a reference of its whole result, and the comparison with it.

Numbers are random bits whose exponent is one of two, drawn in a tenth of the time of normal numbers. The
reference is computed on the GPU once, by cuBLAS in f32 on the same numbers; 64 random rows of a result are
compared with float64 on the host as well.
"""

import struct
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.gpu_visit.comparison import LARGEST_BYTES, TERMS_BYTES
from tuner.core.bounded import TINY
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul
from tuner.core.problem import SCALED_COLUMNS, SCALED_DEPTH, Problem
from tuner.gpu.driver.cublas import Cublas
from tuner.gpu.target.arrays import LoadedKernels
from tuner.gpu.target.evaluator import LoadedCublas, LocalGpu
from tuner.gpu.target.event_timing import Enqueue
from tuner.payload.drawing import draw_offsets_of
from tuner.payload.reference import NUMPY_DTYPES, Array, BaseDraw, Inputs, output_dtype

# dtype -> (unsigned type, bits that stay random, bits that are set): numbers of either sign in [0.5, 2)
RANDOM_BITS: dict[str, tuple[Any, int, int]] = {
    "f32": (np.uint32, 0x80FFFFFF, 0x3F000000),
    "tf32x3": (np.uint32, 0x80FFFFFF, 0x3F000000),
    "bf16x6": (np.uint32, 0x80FFFFFF, 0x3F000000),
    "tf32": (np.uint32, 0x80FFE000, 0x3F000000),
    "f16": (np.uint16, 0x87FF, 0x3800),
    "bf16": (np.uint16, 0x80FF, 0x3F00),
    "e4m3": (np.uint8, 0x8F, 0x30),
}
I8_SHIFT = 2  # random bytes become -32 to 31: sums of 16384 products are exact in f32
COMPARED_ROWS = 64  # with float64
REFERENCE_LIMIT = 2.0  # tolerances: the reference, in f32, may itself be off by one
INTEGER_TOLERANCE = 0.5  # a whole number off is wrong
NOTHING = 0xFFFFFFFF  # NaN, or -1


def random_operand(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Returns random numbers of a type as they are stored."""
    if dtype == "i8":
        return rng.integers(-128, 128, shape, np.int8) >> I8_SHIFT
    kind, kept, fixed = RANDOM_BITS[dtype]
    bits = rng.integers(0, np.iinfo(kind).max, shape, kind, endpoint=True)
    bits &= kind(kept)
    bits |= kind(fixed)
    return bits.view(NUMPY_DTYPES[dtype])


def random_inputs(problem: Problem, rng: np.random.Generator) -> Inputs:
    """Draws A and B of a problem without a batch, with groups of all rows; the product is not computed."""
    m, n, k = problem.sizes
    a = random_operand((k, m) if problem.layout == "tn" else (m, k), problem.dtype, rng)
    b = random_operand(problem.b_shape, problem.dtype, rng)
    scales = tuple(np.abs(random_operand(scale.shape, scale.dtype, rng)) for scale in problem.scales)
    wide_a, wide_b = widened_operands(a, b, scales)
    rows = _norms(wide_a, int(problem.layout != "tn"))
    columns = _norms(wide_b, int(problem.layout == "nt"))
    offsets = draw_offsets_of(problem, rng)
    base = BaseDraw(a, b, problem.layout, rows, columns.reshape(-1, n), scales, offsets)
    return Inputs(problem, base, a, b, (), np.ones(m), np.ones((problem.b_matrices, n)))


def widened_operands(
    a: Array, b: Array, scales: tuple[Array, ...]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Returns A and B in f32 as they are stored, times their scales, if any, rounded once."""
    wide_a = a.astype(np.float32)
    wide_b = b.astype(np.float32)
    if not scales:
        return wide_a, wide_b
    (k,) = {a.shape[1], b.shape[1]}  # layout nt
    of_a, of_b = (scale.repeat(SCALED_DEPTH, axis=1)[:, :k] for scale in scales)
    return wide_a * of_a, wide_b * of_b.repeat(SCALED_COLUMNS, axis=0)[: len(b)]


def _norms(wide: npt.NDArray[np.float32], axis: int) -> npt.NDArray[np.float64]:
    square: npt.NDArray[np.float32] = np.einsum(
        "...ij,...ij->...i" if axis else "...ij,...ij->...j", wide, wide
    )
    return np.sqrt(square.astype(np.float64))


@dataclass(frozen=True)
class ResultErrors:
    """How far a result is off, in tolerances; NaN and infinity where it has no numbers."""

    against_reference: float | None  # of all elements; None: there is no reference
    against_float64: float  # of ``COMPARED_ROWS`` rows
    text: str  # the worst of these rows

    @property
    def is_right(self) -> bool:
        """Returns whether all compared elements are within their tolerances."""
        is_near = self.against_reference is None or self.against_reference <= REFERENCE_LIMIT
        return is_near and self.against_float64 <= 1.0


class DeviceOperands:
    """A problem's operands, result and reference in device memory, until ``close``."""

    def __init__(
        self,
        gpu: LocalGpu,
        problem: Problem,
        comparison: KernelCode,
        find: Callable[[], str],
        seed: int = 0,
    ) -> None:
        """Draws, uploads, and computes the reference where there is a cuBLAS. Raises DeviceError."""
        self.problem = problem
        self._gpu = gpu
        self._stack = ExitStack()
        rng = np.random.default_rng(seed)
        self.inputs = random_inputs(problem, rng)
        m, n, _ = problem.sizes
        self.compared_rows = np.sort(rng.choice(m, min(m, COMPARED_ROWS), replace=False))
        self._c_bytes = m * n * problem.output_bytes
        self.addresses = {name: self._uploaded(array) for name, array in self.inputs.named.items()}
        self.addresses["c"] = self._allocated(self._c_bytes)
        self._comparison = LoadedKernels(gpu.device, comparison)
        self._largest = self._allocated(LARGEST_BYTES)
        self._expected, tolerance = self.inputs.tile(self.compared_rows, slice(None))
        self._tolerance = np.maximum(tolerance, INTEGER_TOLERANCE if problem.dtype == "i8" else TINY)
        terms = struct.pack("<Qf4x", m * n, 1.0 / float(self._tolerance.max()))
        self._terms = self._uploaded(np.frombuffer(terms.ljust(TERMS_BYTES, b"\0"), np.uint8))
        self._reference = self._reference_by_cublas(find)

    def close(self) -> None:
        """Frees the device memory."""
        self._stack.close()

    def errors_of(self, work: Enqueue) -> ResultErrors:
        """Runs work once on a result that was overwritten before, and compares. Raises DeviceError."""
        self._gpu.device.fill(self.addresses["c"], NOTHING, 4, self._c_bytes // 4, 0)
        work(0)
        largest = None if self._reference is None else self._largest_error(self._reference)
        worst, text = self._errors_of_rows(self._downloaded())
        return ResultErrors(largest, worst, text)

    def _largest_error(self, reference: int) -> float:
        addresses = {"c": self.addresses["c"], "reference": reference}
        addresses |= {"terms": self._terms, "largest": self._largest}
        self._comparison.work(addresses)(0)
        found = np.empty(1, np.float32)
        self._gpu.device.copy(found.ctypes.data, self._largest, LARGEST_BYTES, 0)
        self._gpu.device.synchronize_stream(0)
        return float(found[0])

    def _downloaded(self) -> npt.NDArray[np.float64]:
        """Returns the compared rows of the result."""
        count = self.problem.sizes[1]
        rows = np.empty((len(self.compared_rows), count), output_dtype(self.problem))
        for place, row in enumerate(self.compared_rows):
            source = self.addresses["c"] + int(row) * rows.strides[0]
            self._gpu.device.copy(rows[place].ctypes.data, source, rows[place].nbytes, 0)
        self._gpu.device.synchronize_stream(0)
        return rows.astype(np.float64)

    def _errors_of_rows(self, rows: npt.NDArray[np.float64]) -> tuple[float, str]:
        """Returns the largest error in tolerances, infinite without a number, and where it is."""
        with np.errstate(invalid="ignore"):
            errors = np.abs(rows - self._expected) / self._tolerance
        errors[np.isnan(errors)] = np.inf
        place, column = np.unravel_index(int(np.argmax(errors)), errors.shape)
        worst = f"worst at [{self.compared_rows[place]}, {column}]: found {rows[place, column]:.9g}"
        wanted = f"expected {self._expected[place, column]:.9g}"
        text = f"{int((errors > 1.0).sum())} of {errors.size} elements are wrong; {worst}, {wanted}"
        return float(errors[place, column]), text

    def _reference_by_cublas(self, find: Callable[[], str]) -> int | None:
        """Returns the address of the result in f32, of operands that were widened.

        None without cuBLAS, and of groups of rows, which it does not multiply.
        """
        m, n, k = self.problem.sizes
        if self.problem.groups:
            return None
        try:
            library = Cublas(self._gpu.device, find())
        except TunerError:
            return None
        wide = Matmul(m, n, k, "f32", self.problem.layout)
        reference = self._allocated(4 * m * n)
        with closing(library), ExitStack() as passing:
            own = self._stack
            self._stack = passing  # the widened operands are freed at the end of this block
            base = self.inputs.base
            widened = widened_operands(self.inputs.a, self.inputs.b, base.scales)
            a, b = map(self._uploaded, widened)
            self._stack = own
            LoadedCublas.of(library, wide).work({"a": a, "b": b, "c": reference})(0)
            self._gpu.device.synchronize_stream(0)
        return reference

    def _uploaded(self, array: Array) -> int:
        address = self._allocated(array.nbytes)
        self._gpu.device.copy(address, array.ctypes.data, array.nbytes, 0)
        self._gpu.device.synchronize_stream(0)
        return address

    def _allocated(self, size_bytes: int) -> int:
        device = self._gpu.device
        address = device.allocate(size_bytes, 0)
        self._stack.callback(device.free, address, 0)
        return address


def sized_for(problem: Problem, most: int) -> Problem:
    """Returns the problem with no size above ``most``: for a stand-in for a GPU, which computes nothing."""
    m, n, k = (min(size, most) for size in problem.sizes)
    return replace(problem, sizes=(m, n, k))
