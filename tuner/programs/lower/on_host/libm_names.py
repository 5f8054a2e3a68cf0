"""Names of the C math library that JIT-compiled host code calls."""

import re

from tuner.mlir.cpu.jit_guards import DECLARATION, RESOLVABLE
from tuner.mlir.effects.runner_names import is_runner_function
from tuner.programs.lower.payload_checks import RUNTIME

CALLBACK = "_mlir_ciface_"  # begins the C names of functions that the runtime gives
MATH_PREFIX = "math_"  # of functions of the C library that ``tuner.programs.run.libm_symbols`` finds


def with_bundled_math(text: str) -> str:
    """Renames what is declared of the math library: LLVM knows those names, the JIT has them wrong."""
    for name in set(DECLARATION.findall(text)) - RESOLVABLE:
        if not name.startswith((RUNTIME, CALLBACK)) and not is_runner_function(name):
            text = re.sub(rf"@{re.escape(name)}\b", f"@{MATH_PREFIX}{name}", text)
    return text
