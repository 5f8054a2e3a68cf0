"""Bodies of linalg ops: sums of products, how integers are extended, and rounding to bf16."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import attributes_of, number_of, op_of, walk

# Pipeline: named ops become linalg.generic
GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"

# attribute of a matmul, and the name in its value
CAST = "cast"
UNSIGNED = "cast_unsigned"
ROUND = "arith.truncf"
COMPARE = "arith.cmpf"
SELECT = "arith.select"
ADD = ("arith.addf", "arith.addi")
MULTIPLY = ("arith.mulf", "arith.muli")
MULTIPLY_AND_ADD = "math.fma"
EXTEND_UNSIGNED = "arith.extui"
EXTENSIONS = ("arith.extf", "arith.extsi", EXTEND_UNSIGNED)


def is_unsigned(op: Op) -> bool:
    """Returns whether a matmul or batch_matmul extends integers with zeros, not with their signs."""
    return CAST in op.attributes and UNSIGNED in str(op.attributes[CAST])


def factor_extensions(op: Op) -> set[str] | None:
    """Returns what extends the factors of a ``linalg.generic`` that adds products of two inputs to its sums.

    Factors of the type of the sums are not extended. None for an operation with another body.

        ^bb0(%x: i8, %y: i8, %sum: i32):  // {"arith.extsi"}
          %a = arith.extsi %x : i8 to i32
          %b = arith.extsi %y : i8 to i32
          %p = arith.muli %a, %b : i32
          %s = arith.addi %p, %sum : i32
          linalg.yield %s : i32
    """
    if len(op.operands) != 3 or len(op.regions[0].blocks) != 1:
        return None
    block = op.regions[0].blocks[0]
    first, second, total = block.arguments
    *_, end = block.operations
    if len(end.operands) != 1:
        return None
    names = set()
    read = []
    for factor in _factors(end.operands[0], total):
        extension = op_of(factor, *EXTENSIONS)
        if extension is None:
            read.append(factor)
        else:
            names.add(extension.name)
            read.append(extension.operands[0])
    if read in ([first, second], [second, first]):
        return names
    return None


def _factors(number: Value, total: Value) -> list[Value]:
    """Returns x and y of a scalar ``x * y + total``; [] for another one."""
    fused = op_of(number, MULTIPLY_AND_ADD)
    if fused is not None and fused.operands[2] == total:
        return list(fused.operands)[:2]
    added = op_of(number, *ADD)
    if added is None:
        return []
    others = [term for term in added.operands if term != total]
    if len(others) != 1:
        return []
    product = op_of(others[0], *MULTIPLY)
    if product is None:
        return []
    return list(product.operands)


def round_late(function: Op) -> None:
    """Moves roundings from f32 to bf16 after the selection of the number or a constant limit, in place.

    Comparisons are then of f32, where vector code would extend bf16 for each. Rounding never changes the
    order of two numbers, and a limit is a bf16 number: only a zero may have the other sign.

        %r = arith.truncf %x : f32 to bf16
        %c = arith.cmpf ugt, %r, %limit : bf16
        %y = arith.select %c, %r, %limit : bf16
      becomes, with %wide the same constant
        %c = arith.cmpf ugt, %x, %wide : f32
        %s = arith.select %c, %x, %wide : f32
        %y = arith.truncf %s : f32 to bf16
    """
    for op in walk(function, SELECT):
        compare = op_of(op.operands[0], COMPARE)
        rounding = None if compare is None else op_of(compare.operands[0], ROUND)
        if compare is not None and rounding is not None:
            _swap(op, compare, rounding)


def _swap(select: Op, compare: Op, rounding: Op) -> None:
    rounded = rounding.results[0]
    wide = rounding.operands[0]
    limit = number_of(compare.operands[1])
    of_bf16 = isinstance(rounded.type, ir.BF16Type) and isinstance(wide.type, ir.F32Type)
    # one branch is the rounded number, the other the constant compared with
    roundings = [op_of(operand, ROUND) for operand in list(select.operands)[1:]]
    chosen = [op is not None and op == rounding for op in roundings]
    others = list(map(number_of, list(select.operands)[1:]))
    if not of_bf16 or limit is None or sum(chosen) != 1 or others[chosen.index(False)] != limit:
        return
    with ir.InsertionPoint(select), select.location:
        bound = value("arith.constant", wide.type, value=ir.FloatAttr.get(wide.type, limit))
        condition = create(COMPARE, [compare.results[0].type], [wide, bound], **attributes_of(compare))
        operands = (wide if is_number else bound for is_number in chosen)
        limited = value(SELECT, wide.type, condition.results[0], *operands)
        again = value(ROUND, rounded.type, limited)
    select.results[0].replace_all_uses_with(again)
    select.erase()
