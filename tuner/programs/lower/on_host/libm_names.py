"""Names of the C math library's functions that JIT-compiled host code calls."""

import re

from tuner.mlir.cpu.jit_guards import DECLARATION, RESOLVABLE
from tuner.mlir.effects.runner_names import is_runner_function
from tuner.programs.lower.payload_checks import RUNTIME

CALLBACK = "_mlir_ciface_"  # prefix of the C names of functions that the runtime defines
MATH_PREFIX = "math_"  # prefix of C library functions that ``tuner.programs.run.libm_symbols`` resolves


def with_bundled_math(text: str) -> str:
    """Returns LLVM-dialect text in which the names of declared C functions have the prefix ``math_``.

    These are math functions, and ``puts`` and ``abort`` of assertions. Names that the JIT resolves, such as
    malloc, and those of the GPU runtime and of MLIR's runner functions stay. The runtime defines functions
    with the new names; the JIT would resolve the original ones, which LLVM knows, wrongly.
    """
    for name in set(DECLARATION.findall(text)) - RESOLVABLE:
        if not name.startswith((RUNTIME, CALLBACK)) and not is_runner_function(name):
            text = re.sub(rf"@{re.escape(name)}\b", f"@{MATH_PREFIX}{name}", text)
    return text
