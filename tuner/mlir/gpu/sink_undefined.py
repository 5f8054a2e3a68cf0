"""Copies undefined values into the launches that use them, after canonicalization hoisted them.

Takes a module before outlining, which would make them kernel parameters: upstream's sink pass does the same
for constants, but does not handle ``llvm.mlir.undef``.

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
    """Moves each ``llvm.mlir.undef`` outside of ``gpu.launch`` ops to its uses, one op per use, in place.

    Otherwise outlining would make the undefined value a parameter of the kernel that uses it.
    """
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
