"""Names and types of the functions of MLIR's runner libraries that a program may call; numbers as printed.

The functions are those of ``mlir_c_runner_utils`` and ``mlir_runner_utils``, see
<https://github.com/llvm/llvm-project/blob/main/mlir/lib/ExecutionEngine/RunnerUtils.cpp>. A function with
``llvm.emit_c_interface`` is called as ``_mlir_ciface_NAME``, with the address of a memref's descriptor.
"""

from typing import Any

import numpy as np

C_INTERFACE = "_mlir_ciface_"
DIGITS = 6  # significant digits that C++ prints of a float: std::ostream, default precision
# Name -> LLVM types of the arguments.
PRINTED_SCALARS: dict[str, tuple[str, ...]] = {
    "printI64": ("i64",),
    "printU64": ("i64",),
    "printF16": ("i16",),  # the bits of the f16
    "printBF16": ("i16",),
    "printF32": ("f32",),
    "printF64": ("f64",),
    "printString": ("ptr",),
    "printOpen": (),
    "printClose": (),
    "printComma": (),
    "printNewline": (),
    "printFlops": ("f64",),
}
# Name -> result type; no arguments.
CLOCKS = {"rtclock": "f64", "nanoTime": "i64"}  # seconds, nanoseconds
# Suffix of a function's name -> element type of the memref that it prints.
PRINTED_ELEMENTS = {
    "I8": "i8",
    "I16": "i16",
    "I32": "i32",
    "I64": "i64",
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
    "Ind": "index",
}
MEMREFS = {f"printMemref{ending}": element for ending, element in PRINTED_ELEMENTS.items()}
SHAPES = {f"printMemrefShape{ending}": element for ending, element in PRINTED_ELEMENTS.items()}
RUNNER_FUNCTIONS = frozenset({*PRINTED_SCALARS, *CLOCKS, *MEMREFS, *SHAPES})


def is_runner_function(symbol: str) -> bool:
    """Returns whether a symbol names a function of MLIR's runner libraries, also with ``_mlir_ciface_``."""
    return symbol.removeprefix(C_INTERFACE) in RUNNER_FUNCTIONS


def number_text(number: Any) -> str:
    """Returns a number as a C++ stream prints it: an integer in full, a float with six significant digits."""
    if isinstance(number, np.integer | np.bool_ | int):
        return str(int(number))
    text = f"{float(number):.{DIGITS}g}"
    if np.signbit(float(number)) and text == "nan":
        return text.replace("nan", "-nan")
    return text
