"""Makes the symbol of dynamic shared memory external, so that its memory comes after static memory.

Upstream lowers ``gpu.dynamic_shared_memory`` to an internal array of no elements, which LLVM prints as one
static byte: whatever is addressed through it overlaps other static shared memory.
"""

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk

SYMBOL_PREFIX = "__dynamic_shmem__"  # upstream's name, convert-gpu-to-nvvm


def make_shared_memory_external(module: ir.Module, alignment_bytes: int) -> int:
    """Changes linkage and alignment after ``convert-gpu-to-nvvm``; returns how many symbols there were.

    PTX then says ``.extern .shared .align N .b8 name[]``.
    """
    symbols = [
        op
        for op in walk(module, "llvm.mlir.global")
        if ir.StringAttr(op.attributes["sym_name"]).value.startswith(SYMBOL_PREFIX)
    ]
    for symbol in symbols:
        symbol.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
        symbol.attributes["alignment"] = ir.Attribute.parse(f"{alignment_bytes} : i64")
    return len(symbols)
