"""Which instruction sets the code of a transform script needs: those of the ops that it calls.

Vectors of any width need none, since LLVM compiles them for every processor.
"""

import re

from tuner.core.instruction_sets import AMX_BF16, AMX_INT8, AVX512, AVX512_BF16, VNNI

PRODUCTS = {"bf16": AMX_BF16, "i8": AMX_INT8}  # of tiles, by dtype of the operands
# Transform op -> {dtype of the operands: instruction set}; "" is any dtype
OPS = {
    "tuner.amx_block": PRODUCTS,
    "tuner.vnni_block": {"": VNNI},
    "transform.apply_patterns.x86.vector_contract_to_amx_dot_product": PRODUCTS,
    "transform.apply_patterns.x86.vector_contract_to_packed_type_dot_product": {"bf16": AVX512_BF16},
}
VNNI_BLOCK = re.compile(r'"tuner\.vnni_block"\s*\([^)]*\)\s*(<?\{[^}]*\})?')  # with its attributes
PAIRS = re.compile(r'"tuner\.pair_block"\s*\([^)]*\)\s*<?\{[^}]*\bdots = 1\b')  # which are dot products
IN_256_BITS = re.compile(r"\blanes = 8\b")  # AVX-VNNI has these; 16 lanes, the default, are AVX-512


def instructions_needed(script: str, dtype: str) -> tuple[str, ...]:
    """Returns the names of the instruction sets without which a script's code cannot run; () for none.

    Args:
        script: text of the script. Lines that begin with ``//`` do not count.
        dtype: element type of the operands ("bf16"), which decides the kind of AMX products.
    """
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    found = {sets.get(dtype, sets.get("")) for op, sets in OPS.items() if op in code}
    if any(not IN_256_BITS.search(attributes) for attributes in VNNI_BLOCK.findall(code)):
        found.add(AVX512)
    if PAIRS.search(code):
        found.add(AVX512_BF16)
    return tuple(sorted(name for name in found if name))
