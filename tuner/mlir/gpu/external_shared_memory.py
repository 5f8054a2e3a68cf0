"""Makes the symbol of dynamic shared memory external, so that its memory follows static shared memory.

Takes kernels after ``convert-gpu-to-nvvm``, which lowers ``gpu.dynamic_shared_memory`` to an internal array
of no elements. LLVM prints such an array as one static byte, so that accesses to it would overlap other
static shared memory. Sets external linkage and the alignment; PTX then has
``.extern .shared .align N .b8 name[]``. Other globals stay.

    llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : ...
  with alignment_bytes = 1024 becomes
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 1024 : i64} : ...
"""

from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.walking import walk

SYMBOL_PREFIX = "__dynamic_shmem__"  # the name that convert-gpu-to-nvvm gives


def make_shared_memory_external(module: ir.Module, alignment_bytes: int) -> int:
    """Gives the symbols of dynamic shared memory external linkage and an alignment; returns how many.

    Changes in place the globals that ``convert-gpu-to-nvvm`` created for ``gpu.dynamic_shared_memory``.
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
