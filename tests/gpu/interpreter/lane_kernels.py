"""Kernels for tests of the interpreter, launched on numpy arrays."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tuner.core.numpy_types import dtype_of
from tuner.gpu.interpreter.kernels import LaneLaunch, read_kernels
from tuner.runtime.arrays import MemRef

KINDS = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64")
DTYPES = {name: dtype_of(name) for name in KINDS}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
Sizes3 = tuple[int, int, int]


def memref_type(array: Any) -> str:
    return f"memref<{''.join(f'{size}x' for size in array.shape)}{NAMES[array.dtype]}>"


@cache
def kernel_of(text: str) -> Any:
    return read_kernels(text)["k"]


def module_text(body: str, kinds: tuple[str, ...], surrounding: str = "") -> str:
    """Returns a module with a kernel of parameters %0, %1, ..."""
    parameters = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(kinds))
    return f"gpu.module @m {{ {surrounding} gpu.func @k({parameters}) kernel {{ {body} gpu.return }} }}"


def launch(
    body: str, *arrays: Any, grid: Sizes3 = (1, 1, 1), block: Sizes3 = (32, 1, 1), surrounding: str = ""
) -> str:
    """Runs a kernel on arrays, which it changes in place; returns what it prints."""
    kernel = kernel_of(module_text(body, tuple(map(memref_type, arrays)), surrounding))
    options = [np.array(MemRef.of(each.ctypes.data, each.shape).words, np.int64) for each in arrays]
    printed: list[str] = []
    kernel.launch(LaneLaunch(grid, block, None), [each.ctypes.data for each in options], printed.append)
    return "".join(printed)


def numbered(lines: str, number: int, names: Iterable[str]) -> str:
    """Returns lines in which the values of these names have a number behind them."""
    return re.sub(rf"%({'|'.join(names)})\b", rf"%\g<1>{number}", lines)


def each_applied(cases: Sequence[tuple[str, Any]], *operands: Any) -> list[Any]:
    """Returns ``%r`` of each (lines, type) for 1-D operands %a, %b, %c: all in one kernel."""
    count = len(operands[0])
    found = [np.zeros(count, result) for _, result in cases]
    types = map(memref_type, operands)
    loads = "\n".join(f"%{'abc'[at]} = memref.load %{at}[%t] : {each}" for at, each in enumerate(types))
    body = "\n".join(
        f"{numbered(lines, number, 'qrx')}\n"
        f"memref.store %r{number}, %{number + len(operands)}[%t] : {memref_type(found[number])}"
        for number, (lines, _) in enumerate(cases)
    )
    launch(f"%t = gpu.thread_id x\n{loads}\n{body}", *operands, *found, block=(count, 1, 1))
    return found


def applied(lines: str, result: Any, *operands: Any) -> Any:
    """Returns ``%r`` of some lines, of type ``result``, for each element of 1-D operands %a, %b, %c."""
    (found,) = each_applied([(lines, result)], *operands)
    return found
