"""Dot products of four unsigned by four signed bytes, as calls that the lowering replaces.

A transform op leaves a ``func.call`` of ``@vpdpbusd_512``, which has no memory effects that a pass would have
to know. The lowering makes of each call the instruction vpdpbusd (AVX512-VNNI, AVX-VNNI), or vector code for
a processor without it. Sums wrap around, as those of i32 do.

    %next = call @vpdpbusd_512(%sums, %u, %s) : (vector<16xi32>, ...
  becomes
    %next = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%sums, %u, %s) : ...
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import deinterleaved, value
from tuner.mlir.rewrite.walking import walk

NAME = "vpdpbusd_"  # then the bits of a register
INTRINSIC = "llvm.x86.avx512.vpdpbusd."
LANE_BITS, PER_LANE = 32, 4


def declare_byte_dot(module: Op, lanes: int) -> None:
    """Declares the function of dot products into ``lanes`` sums in a module, unless it is there."""
    name = f"{NAME}{LANE_BITS * lanes}"
    block = module.regions[0].blocks[0]
    names = [each.attributes["sym_name"] for each in block if "sym_name" in each.attributes]
    if any(ir.StringAttr(each).value == name for each in names):
        return
    sums = f"vector<{lanes}xi32>"
    factors = f"vector<{PER_LANE * lanes}xi8>"
    text = f"({sums}, {factors}, {factors}) -> {sums}"
    with ir.InsertionPoint.at_block_begin(block), module.location:
        ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(ir.Type.parse(text)),
            },
            regions=1,
        )


def byte_dot(sums: Value, unsigned: Value, signed: Value) -> Value:
    """Creates the call of a dot product: to each sum are added four products of its four pairs of bytes."""
    lanes = ir.VectorType(sums.type).shape[0]
    callee = ir.FlatSymbolRefAttr.get(f"{NAME}{LANE_BITS * lanes}")
    return value("func.call", sums.type, sums, unsigned, signed, callee=callee)


def lower_byte_dots(module: ir.Module, *, emulates: bool) -> None:
    """Replaces the calls of dot products by the instruction, or by vector code if ``emulates``, in place."""
    for call in walk(module, "func.call"):
        if ir.FlatSymbolRefAttr(call.attributes["callee"]).value.startswith(NAME):
            with ir.InsertionPoint(call), call.location:
                made = _vector_code(call) if emulates else _instruction(call)
            call.results[0].replace_all_uses_with(made)
            call.erase()
    for function in [op.operation for op in module.body.operations]:
        if _is_declared(function):
            function.erase()


def _is_declared(op: Op) -> bool:
    return bool(op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value.startswith(NAME))


def _instruction(call: Op) -> Value:
    sums = call.results[0].type
    bits = LANE_BITS * ir.VectorType(sums).shape[0]
    return value(
        "llvm.call_intrinsic",
        sums,
        *call.operands,
        intrin=ir.StringAttr.get(f"{INTRINSIC}{bits}"),
        op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([3, 0]),
    )


def _vector_code(call: Op) -> Value:
    """Creates the products as i32, and adds up each four that stand side by side."""
    sums, unsigned, signed = call.operands
    kind = ir.VectorType(sums.type)
    wide = ir.VectorType.get([PER_LANE * kind.shape[0]], kind.element_type)
    left, right = value("arith.extui", wide, unsigned), value("arith.extsi", wide, signed)
    products = value("arith.muli", wide, left, right)
    for part in deinterleaved(products, kind.shape[0]):
        sums = value("arith.addi", kind, sums, part)
    return sums
