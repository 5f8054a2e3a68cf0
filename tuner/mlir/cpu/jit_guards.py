"""Checks of lowered modules that would crash the JIT, or take it seconds. The checks change nothing."""

import re

from tuner.core.element_types import NUMBER_TYPES
from tuner.core.errors import CandidateError, Stage

# Functions of the C library that lowered code may call. Any other undefined symbol crashes the JIT.
RESOLVABLE = frozenset(
    {"malloc", "free", "aligned_alloc", "memcpy", "memset", "sem_wait", "sem_post", "sched_yield"}
)
DECLARATION = re.compile(
    r'^ *llvm\.func (?:\w+ )*@"?([^"(\n]+)"?\(.*[^{\n]$', re.MULTILINE
)  # no body follows
# A vector<700xf32> takes the JIT seconds; the widest vector needed is the 28 accumulators of a register tile,
# which a bf16 kernel passes on as one vector<448xf32> and which take 0.1 to 0.3 s to load.
VECTOR_LIMIT_BYTES = 2048


def reject_what_the_jit_cannot_take(llvm_text: str) -> None:
    """Raises CandidateError(RESOURCES) for code that would crash the JIT or take the JIT seconds to compile.

    ``llvm_text`` is a module in LLVM dialect. Rejected are a declared function that is not one of
    ``RESOLVABLE``, which would be an unresolved symbol, and a one-dimensional vector type wider than 2048
    bytes (``VECTOR_LIMIT_BYTES``).
    """
    missing = sorted(set(DECLARATION.findall(llvm_text)) - RESOLVABLE)
    if missing:
        raise CandidateError(
            Stage.RESOURCES, f"unresolved symbol {missing[0]}: the code copies or prints by library call"
        )
    for count, dtype in sorted(set(re.findall(r"vector<(\d+)x(\w+)>", llvm_text))):
        bits = NUMBER_TYPES[dtype].bits if dtype in NUMBER_TYPES else 64
        size = int(count) * bits // 8
        if size > VECTOR_LIMIT_BYTES:
            raise CandidateError(
                Stage.RESOURCES, f"vector<{count}x{dtype}> is {size} bytes wide, allowed {VECTOR_LIMIT_BYTES}"
            )
