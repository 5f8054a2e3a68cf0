"""What a script requires: instruction sets of the processor, and transform ops of tuner."""

import re

from tuner.core.processors import AMX_BF16, AMX_INT8, AVX512, AVX512_BF16, VNNI

# Which instruction sets the code of a transform script needs: those of the ops that it calls.
# Vectors of any width need none, since LLVM compiles them for every processor.

PRODUCTS = {"bf16": AMX_BF16, "i8": AMX_INT8}  # of tiles, by dtype of the operands
# Transform op -> {dtype of the operands: instruction set}; "" is any dtype
OPS = {
    "tuner.amx_block": PRODUCTS,
    "tuner.vnni_block": {"": VNNI},
    "transform.apply_patterns.x86.vector_contract_to_amx_dot_product": PRODUCTS,
    "transform.apply_patterns.x86.vector_contract_to_packed_type_dot_product": {"bf16": AVX512_BF16},
}
VNNI_BLOCK = re.compile(r'"tuner\.vnni_block"\s*\([^)]*\)\s*(<?\{[^}]*\})?')  # with its attributes
PAIRS = re.compile(r'"tuner\.pair_block"\s*\([^)]*\)\s*<?\{[^}]*\bdots = 1\b')  # by dot-product instructions
IN_256_BITS = re.compile(r"\blanes = 8\b")  # of AVX-VNNI; 16 lanes, the default, need AVX-512


def instructions_needed(script: str, dtype: str) -> tuple[str, ...]:
    """Returns the names of the instruction sets without which a script's code cannot run; () for none.

    Lines that begin with ``//`` do not count. ``dtype``, of the operands, decides the kind of AMX products.
    """
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    needed = {sets.get(dtype, sets.get("")) for op, sets in OPS.items() if op in code}
    if any(not IN_256_BITS.search(attributes) for attributes in VNNI_BLOCK.findall(code)):
        needed.add(AVX512)
    if PAIRS.search(code):
        needed.add(AVX512_BF16)
    return tuple(sorted(name for name in needed if name))


CUSTOM_DIALECT = "tuner."  # prefix of tuner's transform ops


def custom_ops(script: str) -> tuple[str, ...]:
    """Returns tuner's ops that a script calls in generic syntax, sorted; () for a portable script."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    return tuple(sorted(set(re.findall(rf'"({re.escape(CUSTOM_DIALECT)}[\w.]+)"\s*\(', code))))
