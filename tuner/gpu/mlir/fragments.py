"""Lowers elementwise operations on tensor core fragments, the registers that hold parts of a matrix.

Takes kernels before ``convert-gpu-to-nvvm``, which crashes at some kinds of
``gpu.subgroup_mma_elementwise``, or gives wrong code. A fragment becomes a struct of registers. Rejected:
``extf``, whose operand and result distribute elements over threads differently; types other than f16 and,
as sums ("COp"), f32 and i32.

    %z = gpu.subgroup_mma_elementwise subf %x, %y : ... -> !gpu.mma_matrix<16x16xf32, "COp">
  becomes, for each of the 8 registers
    %s = builtin.unrealized_conversion_cast %x : !gpu.mma_matrix<...> to !llvm.struct<(f32, ...)>
    %a = llvm.extractvalue %s[0] : !llvm.struct<(f32, ...)>
    %c = llvm.fsub %a, %b : f32
    %u = llvm.insertvalue %c, %t[0] : !llvm.struct<(f32, ...)>
"""

import re

from tuner.mlir.bindings import ir
from tuner.mlir.ir.building import value
from tuner.mlir.ir.reading import unsupported, walk

ELEMENTWISE = "gpu.subgroup_mma_elementwise"
CAST = "builtin.unrealized_conversion_cast"
FLOATS = {
    "addf": "llvm.fadd",
    "subf": "llvm.fsub",
    "mulf": "llvm.fmul",
    "divf": "llvm.fdiv",
    "negatef": "llvm.fneg",
    "maxf": "llvm.intr.maximum",
    "minf": "llvm.intr.minimum",
}
INTEGERS = {
    "addi": "llvm.add",
    "subi": "llvm.sub",
    "muli": "llvm.mul",
    "negates": "llvm.sub",
    "divs": "llvm.sdiv",
    "divu": "llvm.udiv",
}
ALLOWED = f"{', '.join(FLOATS)} of f16 and of f32 sums, {', '.join(INTEGERS)} of i32 sums"
# (element, operand) -> (registers per thread, their type): PTX ISA, matrix fragments of wmma.
REGISTERS = {
    ("f16", "AOp"): (8, "vector<2xf16>"),
    ("f16", "BOp"): (8, "vector<2xf16>"),
    ("f16", "COp"): (4, "vector<2xf16>"),
    ("f32", "COp"): (8, "f32"),
    ("i32", "COp"): (8, "i32"),
}
FRAGMENT = re.compile(r'!gpu\.mma_matrix<\d+x\d+x(\w+), "(\w+)">')


def lower_fragment_elementwise(module: ir.Module) -> None:
    """Replaces each ``gpu.subgroup_mma_elementwise`` by one op per register of its fragments, in place.

    Raises CandidateError(COMPILE) for an operation or fragment type that is not supported.
    """
    for op in walk(module, ELEMENTWISE):
        operation = str(op.attributes["opType"]).removeprefix("#gpu<mma_element_wise ").removesuffix(">")
        types = {str(value_.type) for value_ in [*op.operands, *op.results]}
        match = FRAGMENT.fullmatch(str(op.results[0].type))
        fragment = REGISTERS.get((match[1], match[2])) if match is not None else None
        if fragment is None or len(types) > 1:
            raise unsupported(op, f"{operation} of {' and '.join(sorted(types))}", ALLOWED)
        count, register_text = fragment
        register = ir.Type.parse(register_text)
        struct = ir.Type.parse(f"!llvm.struct<({', '.join([register_text] * count)})>")
        name = (INTEGERS if register_text == "i32" else FLOATS).get(operation)
        if name is None:
            raise unsupported(op, f"{operation} of {op.results[0].type}", ALLOWED)
        with op.location, ir.InsertionPoint(op):
            fragments = [value(CAST, struct, operand) for operand in op.operands]
            whole = value("llvm.mlir.undef", struct)
            for number in range(count):
                position = ir.DenseI64ArrayAttr.get([number])
                operands = [
                    value("llvm.extractvalue", register, fragment_struct, position=position)
                    for fragment_struct in fragments
                ]
                if operation == "negates":  # of integers: 0 - x
                    zero = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
                    operands.insert(0, value("llvm.mlir.constant", register, value=zero))
                result = value(name, register, *operands)
                whole = value("llvm.insertvalue", struct, whole, result, position=position)
            op.results[0].replace_all_uses_with(value(CAST, op.results[0].type, whole))
        op.erase()
