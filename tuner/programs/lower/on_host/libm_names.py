"""Names of the C math library's functions that JIT-compiled host code calls."""

import re

from tuner.mlir.cpu.jit_guards import DECLARATION, RESOLVABLE
from tuner.mlir.effects.runner_names import is_runner_function
from tuner.programs.lower.payload_checks import RUNTIME

CALLBACK = "_mlir_ciface_"  # prefix of the C names of functions that the runtime defines
MATH_PREFIX = "math_"  # prefix of C library functions that ``tuner.programs.run.libm_symbols`` resolves


def with_bundled_math(text: str) -> str:
    """Returns LLVM-dialect text in which declared C math functions have the prefix ``math_``.

    The runtime defines functions with these names. The JIT would resolve the original names, which LLVM
    knows, wrongly.
    """
    for name in set(DECLARATION.findall(text)) - RESOLVABLE:
        if not name.startswith((RUNTIME, CALLBACK)) and not is_runner_function(name):
            text = re.sub(rf"@{re.escape(name)}\b", f"@{MATH_PREFIX}{name}", text)
    return text
