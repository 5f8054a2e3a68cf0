"""Runs of ops that replace a ``linalg.matmul`` of buffers: payloads, and the code of a script's function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.mlir.kernels import parsed
from tests.mlir.ops.one_op import apply
from tests.texts import filled, text_beside
from tuner.mlir.cpu import lowering
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

Array = Any
Sizes = tuple[int, int, int]  # (m, n, k)
SUMS = {"bf16": "f32", "i8": "i32"}  # of AMX and VNNI
OF_TYPE = SUMS | {"f32": "f32", "f64": "f64"}
ELEMENTS = {
    "bfloat16": "bf16",
    "int8": "i8",
    "float32": "f32",
    "float64": "f64",
}  # by the name of numpy's type
TOTALS = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
MAPS = {"nt": ("(m, k)", "(n, k)"), "tn": ("(k, m)", "(k, n)")}


def maps_of(layout: str) -> str:
    if layout == "nn":
        return ""
    maps = (f"affine_map<(m, n, k) -> {each}>" for each in (*MAPS[layout], "(m, n)"))
    return f" indexing_maps = [{', '.join(maps)}]"


def stored(m: Any, n: Any, k: Any, layout: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Returns the shapes of A and of B in memory."""
    return (k, m) if layout == "tn" else (m, k), (n, k) if layout == "nt" else (k, n)


def payload(m: int, n: int, k: int, dtype: str, layout: str = "nn", *, fill: str = "0") -> str:
    """Returns f(A, B, C): C = fill + A B, or C += A B without ``fill``."""
    total = OF_TYPE[dtype]
    of_a, of_b = (f"{rows}x{columns}x{dtype}" for rows, columns in stored(m, n, k, layout))
    of_c, number = f"{m}x{n}x{total}", fill if total == "i32" else f"{fill}.0"
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


def run(line: str, text: str, arrays: tuple[Array, ...], *, emulates: bool = False) -> None:
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
    script: str,
    sizes: Sizes,
    draw: Callable[[tuple[int, int]], Array],
    *,
    layout: str = "nn",
    fill: str = "0",
    block: int = 0,
    emulates: bool = True,
) -> None:
    """Runs a payload on drawn operands and on a C of sevens; C must be the start and their product.

    ``block``: of how many columns at a time; 0: of all at once.
    """
    m, n, k = sizes
    a, b = map(draw, stored(m, n, k, layout))
    element = ELEMENTS[a.dtype.name]
    whole, c = payload(*sizes, element, layout, fill=fill), np.full((m, n), 7, TOTALS[OF_TYPE[element]])
    text = blocks_payload(*sizes, element, layout, block) if block else whole
    run(script, text, (a, b, c), emulates=emulates)
    np.testing.assert_array_equal(c, int(fill or 7) + exact(a, b, layout))


def blocks_payload(m: int, n: int, k: int, element: str, layout: str, block: int) -> str:
    """Returns f(A, B, C) whose matmul is in a loop over blocks of columns, of which the last is narrower."""
    total = OF_TYPE[element]
    shapes = (*stored(m, n, k, layout), stored(m, "?", k, layout)[1])
    of_a, of_b, part_of_b = (f"{rows}x{columns}x{element}" for rows, columns in shapes)
    of_c = f"{m}x{n}x{total}"
    place, size = ("[%j, 0]", f"[%columns, {k}]") if layout == "nt" else ("[0, %j]", f"[{k}, %columns]")
    row_of_b = k if layout == "nt" else n
    part_of_b, part_of_c = (
        f"memref<{shape}, strided<[{row}, 1], offset: ?>>"
        for shape, row in ((part_of_b, row_of_b), (f"{m}x?x{total}", n))
    )
    zero, parts = "0" if total == "i32" else "0.0", {"part_of_b": part_of_b, "part_of_c": part_of_c}
    whole = {"of_a": of_a, "of_b": of_b, "of_c": of_c, "zero": zero, "total": total, "maps": maps_of(layout)}
    return filled(__file__, "BLOCKS", block=block, m=m, n=n, place=place, size=size, **whole, **parts)
