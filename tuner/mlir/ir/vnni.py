"""Dot products of four bytes (VNNI): calls of a private function, until they become the instruction."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import deinterleaved, value
from tuner.mlir.ir.reading import name_of, ops_in, private_function, walk

NAME = "vpdpbusd_"  # then the bits of a register
INTRINSIC = "llvm.x86.avx512.vpdpbusd."
LANE_BITS = 32
PER_LANE = 4


def declare_byte_dot(module: Op, lanes: int) -> None:
    """Declares the private function ``@vpdpbusd_<bits>`` in a module, unless it is there.

    It adds dot products of 4 bytes to ``lanes`` sums of i32; see ``byte_dot``.
    """
    name = f"{NAME}{LANE_BITS * lanes}"
    block = module.regions[0].blocks[0]
    names = [op.attributes["sym_name"] for op in block if "sym_name" in op.attributes]
    if any(ir.StringAttr(symbol).value == name for symbol in names):
        return
    sums = f"vector<{lanes}xi32>"
    factors = f"vector<{PER_LANE * lanes}xi8>"
    text = f"({sums}, {factors}, {factors}) -> {sums}"
    with ir.InsertionPoint.at_block_begin(block), module.location:
        private_function(name, ir.Type.parse(text))


def byte_dot(sums: Value, unsigned: Value, signed: Value) -> Value:
    """Creates the call that adds dot products of 4 bytes to a vector of i32 ``sums``; returns the new sums.

    ``unsigned``, ``signed``: vectors of i8, four per sum. The function must be declared.
    """
    lanes = ir.VectorType(sums.type).shape[0]
    callee = ir.FlatSymbolRefAttr.get(f"{NAME}{LANE_BITS * lanes}")
    return value("func.call", sums.type, sums, unsigned, signed, callee=callee)


def lower_byte_dots(module: ir.Module, *, emulates: bool) -> None:
    """Replaces the calls of dot products by the instruction, or by vector code if ``emulates``, in place.

    The call, of four unsigned by four signed bytes, has no memory effects that a pass would have to know; the
    instruction is vpdpbusd (AVX512-VNNI, AVX-VNNI). Sums wrap around.

        %next = call @vpdpbusd_512(%sums, %u, %s) : (vector<16xi32>, ...
      becomes
        %next = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%sums, %u, %s) : ...
    """
    for call in walk(module, "func.call"):
        if ir.FlatSymbolRefAttr(call.attributes["callee"]).value.startswith(NAME):
            with ir.InsertionPoint(call), call.location:
                product = _vector_code(call) if emulates else _instruction(call)
            call.results[0].replace_all_uses_with(product)
            call.erase()
    for function in ops_in(module.body):
        if function.name == "func.func" and name_of(function).startswith(NAME):
            function.erase()


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
    sums, unsigned, signed = call.operands
    type_ = ir.VectorType(sums.type)
    wide = ir.VectorType.get([PER_LANE * type_.shape[0]], type_.element_type)
    left = value("arith.extui", wide, unsigned)
    right = value("arith.extsi", wide, signed)
    products = value("arith.muli", wide, left, right)
    for part in deinterleaved(products, type_.shape[0]):
        sums = value("arith.addi", type_, sums, part)
    return sums
