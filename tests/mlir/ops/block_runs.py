"""Runs of ops that replace a ``linalg.matmul`` of buffers: payloads, and the code of a script's function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.mlir.kernels import parsed
from tests.mlir.ops.conftest import Apply
from tests.texts import filled, text_beside
from tuner.mlir.cpu import lowering
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

Array = Any
SUMS = {"bf16": "f32", "i8": "i32"}
MAPS = {"nt": ("(m, k)", "(n, k)"), "tn": ("(k, m)", "(k, n)")}


def maps_of(layout: str) -> str:
    if layout == "nn":
        return ""
    maps = (f"affine_map<(m, n, k) -> {each}>" for each in (*MAPS[layout], "(m, n)"))
    return f" indexing_maps = [{', '.join(maps)}]"


def payload(m: int, n: int, k: int, dtype: str, layout: str = "nn", *, fill: str = "0", more: int = 0) -> str:
    """Returns f(A, B, C): C = fill + A B, or C += A B without ``fill``; ``more``: elements behind a row."""
    total = SUMS[dtype]
    rows, columns = (k, m) if layout == "tn" else (m, k)
    of_a = f"{rows}x{columns}x{dtype}" + (f", strided<[{columns + more}, 1]>" if more else "")
    of_b = f"{n}x{k}x{dtype}" if layout == "nt" else f"{k}x{n}x{dtype}"
    of_c = f"{m}x{n}x{total}"
    number = fill if total == "i32" or "." in fill else f"{fill}.0"
    cleared = f"""
    %start = arith.constant {number} : {total}
    linalg.fill ins(%start : {total}) outs(%c : memref<{of_c}>)"""
    types = {"of_a": of_a, "of_b": of_b, "of_c": of_c}
    return filled(__file__, "MATMUL", **types, cleared=cleared if fill else "", maps=maps_of(layout))


def call(text: str, *arrays: Array, emulates: bool = False) -> None:
    """Compiles function f of a module and calls it with arrays."""
    with parsed(text) as module:
        code = JittedModule(lowering.lower_to_llvm(module, emulates=emulates), ("f",))
    CompiledFunction(code.addresses["f"])(PackedArguments(*(array.ctypes.data for array in arrays)))


def run(apply: Apply, line: str, text: str, arrays: tuple[Array, ...], *, emulates: bool = False) -> None:
    """Calls function f with arrays after a line of script, and transposes lowered."""
    call(apply(f"{line}\n    {text_beside(__file__, 'TURN')}", text), *arrays, emulates=emulates)


def small_numbers(dtype: Any) -> Callable[[tuple[int, int]], Array]:
    """Draws small whole numbers: every sum is exact, in any order."""
    return lambda shape: np.random.default_rng(0).integers(-8, 8, shape).astype(dtype)


def exact(a: Array, b: Array, layout: str = "nn") -> Array:
    """Returns the product of A and B, stored as the layout says, in float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    product: Array = (a.T if layout == "tn" else a) @ (b.T if layout == "nt" else b)
    return product


def require_product(
    apply: Apply,
    script: str,
    text: str,
    sizes: tuple[int, int, int],
    draw: Callable[[tuple[int, int]], Array],
    *,
    layout: str = "nn",
    start: int = 0,
    emulates: bool = True,
) -> None:
    """Runs a payload on drawn operands and on a C of sevens; C must be ``start`` and their product."""
    m, n, k = sizes
    a, b = draw((k, m) if layout == "tn" else (m, k)), draw((n, k) if layout == "nt" else (k, n))
    c = np.full((m, n), 7, np.int32 if a.dtype == np.int8 else np.float32)
    run(apply, script, text, (a, b, c), emulates=emulates)
    np.testing.assert_array_equal(c, start + exact(a, b, layout))


def blocks_payload(m: int, n: int, k: int, element: str, layout: str, block: int) -> str:
    """Returns f(A, B, C) whose matmul is in a loop over blocks of columns, of which the last is narrower."""
    total = SUMS[element]
    of_a = f"{k}x{m}x{element}" if layout == "tn" else f"{m}x{k}x{element}"
    of_b, of_c = f"{n}x{k}x{element}" if layout == "nt" else f"{k}x{n}x{element}", f"{m}x{n}x{total}"
    part_of_b = f"?x{k}x{element}" if layout == "nt" else f"{k}x?x{element}"
    place, size = ("[%j, 0]", f"[%columns, {k}]") if layout == "nt" else ("[0, %j]", f"[{k}, %columns]")
    row_of_b = k if layout == "nt" else n
    part_of_b, part_of_c = (
        f"memref<{shape}, strided<[{row}, 1], offset: ?>>"
        for shape, row in ((part_of_b, row_of_b), (f"{m}x?x{total}", n))
    )
    zero, parts = "0.0" if total == "f32" else "0", {"part_of_b": part_of_b, "part_of_c": part_of_c}
    whole = {"of_a": of_a, "of_b": of_b, "of_c": of_c, "zero": zero, "total": total, "maps": maps_of(layout)}
    return filled(__file__, "BLOCKS", block=block, m=m, n=n, place=place, size=size, **whole, **parts)
