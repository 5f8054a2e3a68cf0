"""Small kernels around a few instructions: every thread loads its operands, runs code, stores its result."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from tuner.gpu.ptxsim.launch import Simulation, simulate
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError, UnsupportedInstruction
from tuner.gpu.ptxsim.ptx.geometry import Index3

Array = NDArray[Any]
LANES = 64
HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"
PRECISIONS = {"f2": (11, -14, 15), "b2": (8, -126, 127), "f4": (24, -126, 127), "f8": (53, -1022, 1023)}


def lanes_of(dtype: str) -> st.SearchStrategy[Array]:
    """Returns arrays of any bit patterns, with the edges of the type among them."""
    type_ = np.dtype(dtype)
    size = LANES * type_.itemsize
    if type_.kind == "f":
        info = np.finfo(type_)
        edges = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, info.max, info.tiny, -info.smallest_subnormal]
    else:
        limits = np.iinfo(type_)
        edges = [0, 1, limits.max, limits.min, limits.max - 1, 31, 32]

    def mixed(raw: bytes) -> Array:
        values = np.frombuffer(raw, type_).copy()
        values[: 3 * len(edges) : 3] = edges
        if type_.kind == "f":
            values[np.isnan(values)] = np.nan  # quiet ones: numpy warns of the others
        return values

    return st.binary(min_size=size, max_size=size).map(mixed)


def each_lane(code: str, *inputs: Array, result: str, declare: str = "") -> Array:
    """Runs ``code`` in one thread per element, operands in %a, %b, %c, %x; returns what it leaves in %d."""
    arrays = [np.ascontiguousarray(array) for array in inputs]
    count = len(arrays[0]) if arrays else 32
    out = np.zeros(count, result)
    names = "abcdefgh"[: len(arrays)].replace("d", "x")
    loads = [_access("ld", name, array) for name, array in zip(names, arrays, strict=True)]
    named = (*zip(names, arrays, strict=True), ("d", out))
    registers = "".join(f".reg .b{8 * max(array.itemsize, 2)} %{name}; " for name, array in named)
    text = kernel(
        "\n".join([*loads, code, _access("st", "d", out)]),
        parameters=[f".param .u64 p{name}" for name in (*names, "d")],
        declare=f"{registers} .reg .b64 %at, %tid64; .reg .b32 %thread; {declare}",
        before="mov.u32 %thread, %tid.x; cvt.u64.u32 %tid64, %thread;",
    )
    simulate(text, "snippet", (1, 1, 1), (count, 1, 1), (*arrays, out))
    return out


def _access(kind: str, name: str, array: Array) -> str:
    bits = 8 * array.dtype.itemsize
    move = f"ld.global.u{bits} %{name}, [%at]" if kind == "ld" else f"st.global.u{bits} [%at], %{name}"
    return f"ld.param.u64 %at, [p{name}]; mad.lo.s64 %at, %tid64, {bits // 8}, %at; {move};"


@contextmanager
def fault(kind: Defect, match: str) -> Iterator[None]:
    """Expects that a simulation ends with a defect of this kind, for this reason."""
    error = UnsupportedInstruction if kind is Defect.UNSUPPORTED else SimulationError
    with pytest.raises(error, match=match) as caught:
        yield
    assert caught.value.kind is kind


def kernel(
    code: str, parameters: Sequence[str] = (), declare: str = "", before: str = "", variables: str = ""
) -> str:
    """Returns a PTX file with one kernel, ``snippet``."""
    head = f"{HEADER}{variables}\n.visible .entry snippet({', '.join(parameters)})"
    return f"{head}\n{{\n{declare}\n{before}\n{code}\nret;\n}}\n"


def run(
    code: str,
    *arguments: Any,
    threads: int = 32,
    grid: Index3 = (1, 1, 1),
    shared: int = 0,
    variables: str = "",
    seed: int | None = None,
    cluster: Index3 = (1, 1, 1),
) -> Simulation:
    """Runs code with pointers %p0, %p1, ... to its arguments, %t the thread, %b the block.

    %t4 and %t4w are four times the thread, in 32 and 64 bits; %r, %rd, %rs and predicates %q are spare.
    """
    names = [f"a{number}" for number in range(len(arguments))]
    declare = ".reg .b32 %t, %t4, %b, %r<10>; .reg .b64 %rd<10>, %t4w, %p<10>; "
    declare += ".reg .b16 %rs<10>; .reg .pred %q<10>;"
    loads = "".join(f"ld.param.u64 %p{number}, [{name}]; " for number, name in enumerate(names))
    before = f"{loads} mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; shl.b32 %t4, %t, 2; cvt.u64.u32 %t4w, %t4;"
    text = kernel(code, [f".param .u64 {name}" for name in names], declare, before, variables)
    sizes = ", ".join(map(str, cluster))
    text = text.replace(")\n{", f")\n.explicitcluster .reqnctapercluster {sizes}\n{{", 1)
    launch = (text, "snippet", grid, (threads, 1, 1), tuple(arguments))
    return simulate(*launch, dynamic_shared_bytes=shared, schedule_seed=seed)


def kinds(found: Simulation) -> set[Defect]:
    return {hazard.kind for hazard in found.hazards}


def same_bits(found: Array, expected: Array) -> bool:
    """Returns whether arrays are equal bit for bit, but for the payloads of NaN."""
    raw = f"u{expected.dtype.itemsize}"
    equal = found.view(raw) == expected.view(raw)
    with np.errstate(invalid="ignore"):  # a signaling NaN is widened
        is_nan = [np.isnan(each.astype(np.float64)) for each in (found, expected)]
    return bool((equal | (is_nan[0] & is_nan[1])).all())


def rounded(exact: Fraction, dtype: str) -> float:
    """Returns a fraction rounded to the nearest float of a type, ties to even, by integers alone."""
    precision, smallest, largest = PRECISIONS[dtype]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, smallest) - precision + 1)
    whole, rest = divmod(size / unit, 1)
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    value = math.inf if whole * unit >= Fraction(2) ** (largest + 1) else float(whole * unit)
    return math.copysign(value, 1 if exact > 0 else -1)
