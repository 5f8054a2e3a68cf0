"""Kernels of one thread per element that compute an op on the simulated GPU, their inputs, and errors."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.mlir.kernels import parsed
from tests.texts import filled
from tuner.core import numpy_types
from tuner.core.compiled_code import KernelBuffer, KernelCode
from tuner.core.gpu import chip_of
from tuner.gpu.mlir import lowering
from tuner.gpu.ptxsim.launch import simulate

Array = NDArray[Any]
DTYPES: dict[str, Any] = {**numpy_types.DTYPES}
COUNT, THREADS = 1 << 14, 256
MANY = 1 << 16  # where the worst of all numbers counts
EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, 2.5, 3.0, -3.0, math.inf, -math.inf, math.nan),
    *(1e-45, -1e-45, 1e-40, -1e-40, 2.0**-126, 2.0**-25, -(2.0**-25), 2.0**-12, 3.4e38, -3.4e38),
    *(0.49999997, 8388607.5, 8388609.0, -16777217.0, 33554432.0),  # where rounding to integers ends
    *(88.7, 88.8, 89.0, 104.0, -87.4, -103.9, -104.0, 127.9, 128.0, -126.5, -149.0, -150.0),  # where exp does
    *(0.70710677, 1.4142135, 0.92, 0.9199999, 4.0, 4.1, 10.0, 10.1, -17.4, -18.1),  # where formulas change
)
# What float64 has in addition: exp's range, sizes, and where formulas change.
DOUBLE_EDGES = (
    *(1e-310, -1e-310, 5e-324, 1e300, -1e300, 709.7, 709.8, 710.4, -708.4, -745.1, -745.2, 1023.9, 1024.0),
    *(-1022.0, -1074.0, -1075.0, -1075.1, 2.0**-54, 6.0, -6.0, 22.0, 22.1, 2.0**28, 2.0**29, 2.0**53),
    *(math.pi, math.pi / 2, math.pi / 4, 3 * math.pi / 4, 1e15, 1e15 + 0.5, math.tan(math.pi / 8)),
)


def program_of(op: str, arguments: tuple[str, ...], result: str, count: int = COUNT) -> KernelCode:
    """Returns a kernel of one thread per element."""
    kinds = [f"memref<{count}x{kind}>" for kind in arguments]
    parameters = ", ".join(f"%p{number}: {kind}" for number, kind in enumerate(kinds))
    loads = "\n".join(f"%x{at} = memref.load %p{at}[%i] : {kind}" for at, kind in enumerate(kinds))
    sizes = {"count": count, "threads": THREADS, "blocks": count // THREADS}
    text = filled(__file__, "KERNEL", parameters=parameters, result=result, loads=loads, op=op, **sizes)
    buffers = [KernelBuffer(f"p{number}", count * 8, "input") for number in range(len(arguments))]
    buffers += [KernelBuffer("out", count * 8, "output")]
    with parsed(text) as module:
        program = lowering.lower_to_program(module, chip_of("sm_80"), tuple(buffers))
    assert isinstance(program, KernelCode)
    return program


def computed(op: str, *arrays: Array, types: tuple[str, ...], result: str) -> Array:
    """Runs ``op``, from %x0, %x1, ... to %y, on the simulator."""
    program = program_of(op, types, result, len(arrays[0]))
    (launch,) = program.launches
    found = np.zeros(len(arrays[0]), DTYPES[result])
    held = {f"p{number}": array for number, array in enumerate(arrays)} | {"out": found}
    arguments = tuple(held[name] for name in launch.arguments)
    simulate(program.text, launch.kernel, launch.grid, launch.block, arguments)
    return found


def unary(name: str, values: Array, kind: str) -> Array:
    return computed(f"%y = math.{name} %x0 : {kind}", values, types=(kind,), result=kind)


@functools.cache
def values_of(kind: str, count: int = COUNT) -> Array:
    """Returns any bit patterns, small and large numbers, numbers around one, and the edges."""
    dtype, rng = DTYPES[kind], np.random.default_rng(0)
    with np.errstate(all="ignore"):
        parts = [
            rng.integers(0, 256, count // 4 * dtype.itemsize, np.uint8).view(dtype),
            rng.uniform(-5, 5, count // 4).astype(dtype),
            rng.uniform(-110, 110, count // 4).astype(dtype),
            rng.normal(1, 0.3, count // 4).astype(dtype),
        ]
        found = np.concatenate(parts)
        found[: len(EDGES)] = np.array(EDGES).astype(dtype)
        found[np.isnan(found.astype(np.float64))] = np.nan  # quiet ones
    return found


def ulps(found: Array, exact: Array) -> Array:
    """Returns the distances in units of the last place of the nearest number; infinity for another kind."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(found.dtype)
        place = np.spacing(np.abs(np.where(np.isfinite(nearest), nearest, 1))).astype(exact.dtype)
        distance = np.abs(found.astype(exact.dtype) - exact) / place
    is_same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    distance = np.where(is_same & ~np.isfinite(nearest), 0, distance)
    is_other_zero = (found == 0) & (nearest == 0) & (np.signbit(found) != np.signbit(nearest))
    return np.where(np.isnan(distance) | is_other_zero, math.inf, distance)


def exactly(function: Callable[..., Array], *values: Array) -> Array:
    """Returns results in float64; of float64 numbers in the 64 bits of x86's long double."""
    wide = np.longdouble if values[0].dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        return np.asarray(function(*(array.astype(wide) for array in values)), wide)


def edges_first(*pairs: Array) -> Array:
    """Returns pairs of numbers, the first of which are replaced by every pair of EDGES."""
    edges = np.stack([grid.ravel() for grid in np.meshgrid(EDGES, EDGES)])
    return np.concatenate([edges, np.stack(pairs)[:, edges.shape[1] :]], axis=1)


def doubles() -> Array:
    """Returns float64 numbers: around 0, within the range of exp, of all sizes, and the edges."""
    rng, part = np.random.default_rng(0), COUNT // 4
    near = [rng.uniform(-size, size, part) for size in (1, 20, 750)]
    found = np.concatenate([*near, np.exp(rng.uniform(-50, 30, part)) * rng.choice([-1, 1], part)])
    found[: len(EDGES)] = EDGES
    found[len(EDGES) : len(EDGES) + len(DOUBLE_EDGES)] = DOUBLE_EDGES
    return found
