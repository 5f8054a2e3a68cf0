"""Copies undefined values into the launches that use them, where canonicalization took them out of.

Takes a module before outlining, which would make them kernel parameters: upstream's sink pass does the same
for constants, but does not know ``llvm.mlir.undef``.

    %sums = llvm.mlir.undef : !llvm.struct<(f32, f32)>
    gpu.launch ... { "nvvm.wgmma.mma_async"(%sums, ...) }
  becomes
    gpu.launch ... { %sums = llvm.mlir.undef : !llvm.struct<(f32, f32)>  "nvvm.wgmma.mma_async"(%sums, ...) }
"""

from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.walking import walk

UNDEFINED = "llvm.mlir.undef"


def sink_undefined_values(module: ir.Module) -> None:
    """Gives each use inside of a ``gpu.launch`` of an undefined value outside of it a value of its own."""
    launches = walk(module, "gpu.launch")
    inside = {op for launch in launches for op in walk(launch, UNDEFINED)} if launches else set()
    for op in walk(module, UNDEFINED):
        if op in inside:
            continue
        for use in list(op.results[0].uses):
            user = use.owner.operation
            with user.location, ir.InsertionPoint(user):
                user.operands[use.operand_number] = value(UNDEFINED, op.results[0].type)
        op.erase()
