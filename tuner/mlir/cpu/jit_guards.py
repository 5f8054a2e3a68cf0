"""Checks of lowered modules that would crash the JIT, or keep it busy for seconds. They change nothing."""

import re

from tuner.core.element_types import NUMBER_TYPES
from tuner.core.errors import CandidateError, Stage

# What lowered code may call of the C library. Any other undefined symbol makes the JIT print and crash.
RESOLVABLE = frozenset(
    {"malloc", "free", "aligned_alloc", "memcpy", "memset", "sem_wait", "sem_post", "sched_yield"}
)
DECLARATION = re.compile(
    r'^ *llvm\.func (?:\w+ )*@"?([^"(\n]+)"?\(.*[^{\n]$', re.MULTILINE
)  # no body follows
# A vector<700xf32> takes the JIT seconds; the widest wanted are the 28 accumulators of a register tile, which
# a bf16 kernel passes on as one vector<448xf32> and which load in 0.1 to 0.3 s.
VECTOR_LIMIT_BYTES = 2048


def reject_what_crashes_the_jit(llvm_text: str) -> None:
    """Raises CandidateError(RESOURCES) for unresolved symbols and giant vectors."""
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
