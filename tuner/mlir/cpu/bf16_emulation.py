"""Stores bf16 numbers of host code as 16-bit integers, and computes on them in f32.

On a processor without AVX512-BF16, LLVM of the JIT's wheel crashes where it has to round to bf16, pass single
bf16 numbers or make vectors of them: it has no name for the library function that rounds. Takes functions in
LLVM dialect; gives functions in which only constants are bf16, the same on every processor. Rounding is to
nearest even, as in hardware, but subnormal numbers are kept; a NaN stays a NaN.

Code with dot products of AVX512-BF16, or products of bf16 tiles of AMX, needs a processor with AVX512-BF16:
there the processor rounds too, in one instruction. All other values become integers also in such code: on a
processor that has AVX512-FP16 as well, LLVM of the wheel crashes on shuffles and masked loads with zeros of
bf16 ("Cannot select: f16 = bitcast ConstantFP:bf16"). On AArch64 the code rounds, whatever it calls.

    llvm.func @f(%x: bf16) -> f32 {
      %wide = llvm.fpext %x : bf16 to f32
  becomes
    llvm.func @f(%x: i16) -> f32 {
      %word = llvm.zext %x : i16 to i32
      %high = llvm.shl %word, %c16 : i32
      %wide = llvm.bitcast %high : i32 to f32
"""

import struct

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import recreated, value
from tuner.mlir.ir.reading import arguments_in, ops_in, set_operands, uses_of, walk_where

BF16 = "bf16"
STORED = "i16"
WIDE = "f32"
WORD = "i32"
CALL = "llvm.call_intrinsic"
DOT = "llvm.x86.avx512bf16.dpbf16ps"
DOTS = (DOT, "llvm.aarch64.neon.bf")  # beginnings of the names of products of bf16
TILE_PRODUCT = "llvm.x86.tdpbf16ps"
CONSTANT = "llvm.mlir.constant"
EXTEND = "llvm.fpext"
ROUND = "llvm.fptrunc"
ARITHMETIC = tuple(f"llvm.{name}" for name in ("fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fcmp"))
COMPUTING = (EXTEND, ROUND, *ARITHMETIC, "llvm.fptosi", "llvm.fptoui", "llvm.sitofp", "llvm.uitofp")
ARRAY = "!llvm.array<"
INTRINSIC = "llvm.intr."
MOVING = (
    "masked.",
    "vector.insert",
    "vector.extract",
    "vector.interleave",
    "vector.deinterleave",
)  # intrinsics that only move numbers
MANTISSA_BITS = 16  # how many more mantissa bits f32 has than bf16
HALF = 0x7FFF  # just below half a unit in the last place of bf16; plus 1 for an odd number: nearest even
QUIET = 0x40  # bit of a bf16 number that makes a NaN a quiet one
UNORDERED = 14  # predicate "uno" of llvm.fcmp: true where one operand is NaN


def store_bf16_as_integers(module: ir.Module) -> None:
    """Changes bf16 values of host functions to 16-bit integers and computes on them in f32, in place.

    Takes a module in LLVM dialect. First each op that computes gets casts from bf16 to i16, and back, around
    code in f32. Then every bf16 type becomes i16, so that these casts do nothing and are dropped; operands of
    dot products are cast to bf16 again. In a module with dot products of AVX512-BF16 or products of bf16
    tiles the processor rounds to bf16.
    """
    ops = _ops_of_functions(module)
    calls = [op for op in ops if op.name == CALL]
    dots = [call for call in calls if _called(call).startswith(DOTS)]
    # not of AArch64's products, which are among ``dots``: there integer instructions round
    processor_rounds = any(_called(call).startswith((DOT, TILE_PRODUCT)) for call in calls)
    for op in list(filter(_touches_bf16, ops)):
        if op.name == CONSTANT:
            _reinterpret(op)
        elif processor_rounds and op.name == ROUND:
            _use_bits(op)
        elif op.name in COMPUTING or (
            op.name.startswith(INTRINSIC) and not op.name.removeprefix(INTRINSIC).startswith(MOVING)
        ):
            _compute_in_f32(op)
    for op in _ops_of_functions(module):
        if op.name != CONSTANT and not (processor_rounds and op.name == ROUND):
            _retype(op)
    for dot in dots:
        with ir.InsertionPoint(dot), dot.location:
            for position, operand in enumerate(dot.operands):
                if STORED in str(operand.type):
                    dot.operands[position] = value("llvm.bitcast", _with(operand.type, BF16, STORED), operand)


def _ops_of_functions(module: ir.Module) -> list[Op]:
    ops: list[Op] = []
    for function in ops_in(module.body):
        if function.name == "llvm.func":
            ops += walk_where(function, lambda _: True)
    return ops


def _called(call: Op) -> str:
    return str(ir.StringAttr(call.attributes["intrin"]).value)


def _compute_in_f32(op: Op) -> None:
    with ir.InsertionPoint(op), op.location:
        operands = [_widened(operand) if BF16 in str(operand.type) else operand for operand in op.operands]
        types = [_with(result.type, WIDE) for result in op.results]
        if op.name in (EXTEND, ROUND) and operands[0].type == types[0]:
            results = operands
        else:
            results = list(recreated(op, types, operands).results)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(_rounded(new, old.type) if BF16 in str(old.type) else new)
    op.erase()


def _touches_bf16(op: Op) -> bool:
    return any(BF16 in str(number.type) for number in (*op.operands, *op.results))


def _reinterpret(constant: Op) -> None:
    """Replaces uses of a constant by its bits; the constant itself keeps its type, unless it is an array."""
    if str(constant.results[0].type).startswith(ARRAY):
        constant.results[0].replace_all_uses_with(_integer_array(constant))
    else:
        _use_bits(constant)


def _use_bits(op: Op) -> None:
    """Casts an op's result to i16 and back to bf16 for its users; ``_retype`` then drops the cast back."""
    number = op.results[0]
    uses = uses_of(number)
    with ir.InsertionPoint.after(op), op.location:
        bits = value("llvm.bitcast", _with(number.type, STORED), number)
        again = value("llvm.bitcast", number.type, bits)
    set_operands(uses, again)


def _integer_array(constant: Op) -> Value:
    numbers = ir.DenseElementsAttr(constant.attributes["value"])
    (word,) = struct.unpack("<i", struct.pack("<f", numbers.get_splat_value().value))
    bits = word >> MANTISSA_BITS
    type_ = ir.IntegerType.get_signless(16)
    shape = ir.VectorType.get(ir.ShapedType(numbers.type).shape, type_)
    splat = ir.DenseElementsAttr.get_splat(shape, ir.IntegerAttr.get(type_, bits))
    with ir.InsertionPoint(constant), constant.location:
        return value(CONSTANT, _with(constant.results[0].type, STORED), value=splat)


def _widened(number: Value) -> Value:
    bits = value("llvm.bitcast", _with(number.type, STORED), number)
    word = value("llvm.zext", _with(number.type, WORD), bits)
    high = value("llvm.shl", word.type, word, _number(word.type, MANTISSA_BITS))
    return value("llvm.bitcast", _with(number.type, WIDE), high)


def _rounded(number: Value, result: Type) -> Value:
    word = value("llvm.bitcast", _with(result, WORD), number)
    type_ = word.type
    high = value("llvm.lshr", type_, word, _number(type_, MANTISSA_BITS))
    is_odd = value("llvm.and", type_, high, _number(type_, 1))
    above = value("llvm.add", type_, value("llvm.add", type_, word, _number(type_, HALF)), is_odd)
    nearest = value("llvm.lshr", type_, above, _number(type_, MANTISSA_BITS))
    quiet = value("llvm.or", type_, high, _number(type_, QUIET))
    unordered = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), UNORDERED)
    is_nan = value("llvm.fcmp", _with(result, "i1"), number, number, predicate=unordered)
    chosen = value("llvm.select", type_, is_nan, quiet, nearest)
    return value("llvm.bitcast", result, value("llvm.trunc", _with(result, STORED), chosen))


def _retype(op: Op) -> None:
    """Makes an op's types and attributes i16 in place of bf16; erases a cast of i16 to i16."""
    for changed in (*op.results, *arguments_in(op)):
        if BF16 in str(changed.type):
            changed.set_type(_with(changed.type, STORED))
    for name in tuple(op.attributes):
        attribute = op.attributes[name]
        if isinstance(attribute, ir.TypeAttr) and BF16 in str(attribute):
            op.attributes[name] = ir.TypeAttr.get(_with(attribute.value, STORED))
    if op.name == "llvm.bitcast" and op.operands[0].type == op.results[0].type:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


def _with(type_: Type, element: str, was: str = BF16) -> Type:
    return ir.Type.parse(str(type_).replace(was, element))


def _number(type_: Type, number: int) -> Value:
    is_vector = isinstance(type_, ir.VectorType)
    attribute = ir.IntegerAttr.get(type_.element_type if is_vector else type_, number)
    number_or_splat = ir.DenseElementsAttr.get_splat(type_, attribute) if is_vector else attribute
    return value(CONSTANT, type_, value=number_or_splat)
