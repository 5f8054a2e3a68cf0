"""Brings matmuls into the forms that schedules take: operands, sums, broadcasts, batches, initial values.

Each pass replaces one form, in place, by another one that computes the same numbers.
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.linalg import is_unsigned
from tuner.mlir.ir.reading import attributes_of
from tuner.programs.fusions.generics import (
    collapse,
    empty,
    expand,
    maps_attribute,
    parallel_loops,
    selecting,
    summed,
    zeros,
)
from tuner.programs.fusions.operations import (
    COLLAPSE,
    CONTRACTIONS,
    EXPAND,
    FILL,
    GENERIC,
    MATMULS,
    SLICE,
    body_of,
    defining,
    dimensions,
    inits_of,
    inputs_of,
    is_identity,
    is_parallel,
    maps_of,
    users,
)
from tuner.programs.fusions.payload import TensorPayload
from tuner.programs.fusions.views import number_of

# ------------------------------------------------------------------------------
# Gives each user of a broadcast its own: a fusion computes it again, and reads no larger tensor.


def broadcast_for_each_user(payload: TensorPayload) -> None:
    """Clones broadcasts that several operations read, in place, so that each can join its reader's fusion."""
    for op in payload.ops:
        if is_broadcast(op):
            for user in users(op.results[0])[1:]:
                _give_own(op, user)


def is_broadcast(op: Op) -> bool:
    """Returns whether a generic repeats its only input along further dimensions, and computes nothing."""
    if op.name != GENERIC or len(op.results) != 1 or len(inputs_of(op)) != 1 or not all(is_parallel(op)):
        return False
    block = op.regions[0].blocks[0]
    source, result = maps_of(op)
    loops = dimensions(source)
    is_moved = len(body_of(op)) == 1 and body_of(op)[0].operands[0] == block.arguments[0]
    return is_moved and is_identity(result) and loops is not None and len(loops) < source.n_dims


def _give_own(op: Op, user: Op) -> None:
    with ir.InsertionPoint(user), op.location:
        copy = op.clone()
    for number, operand in enumerate(user.operands):
        if operand == op.results[0]:
            user.operands[number] = copy.results[0]


# ------------------------------------------------------------------------------
# Makes one matmul of a batch of matmuls that all have the same B, such as a linear layer's weights.
#
#   %b = linalg.generic ... ins(%w : tensor<64x96xf32>) ... -> tensor<2x64x96xf32>  // a broadcast
#   %r = linalg.batch_matmul ins(%a, %b : tensor<2x32x64xf32>, tensor<2x64x96xf32>) ... -> tensor<2x32x96xf32>
# becomes
#   %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x32x64xf32> into tensor<64x64xf32>
#   %m = linalg.matmul ins(%c, %w : tensor<64x64xf32>, tensor<64x96xf32>) ... -> tensor<64x96xf32>
#   %r = tensor.expand_shape %m [[0, 1], [2]] ... : tensor<64x96xf32> into tensor<2x32x96xf32>


BATCHED, UNBATCHED = "linalg.batch_matmul", "linalg.matmul"
ROWS = [[0, 1], [2]]  # dimensions of A and C: batch and rows become rows


def merge_batches(payload: TensorPayload) -> None:
    """Replaces batches of matmuls with one B by a matmul, in place; their results must begin with zeros."""
    for op in payload.ops:
        if op.name == BATCHED and not is_unsigned(op):  # the matmul that is made extends by sign
            shared = _shared(op.operands[1])
            if shared is not None:
                _merge(op, shared)


def _shared(batch: Value) -> Value | None:
    """Returns the matrix that a batch consists of; None for a batch of several matrices."""
    op = defining(batch)
    if op is None or not is_broadcast(op) or dimensions(maps_of(op)[0]) != (1, 2):
        return None
    return op.operands[0]


def _merge(op: Op, shared: Value) -> None:
    result = op.results[0]
    batch, rows, columns = result.type.shape
    kind = ir.RankedTensorType.get([batch * rows, columns], result.type.element_type)
    with ir.InsertionPoint(op), op.location:
        product = matmul(collapse(op.operands[0], ROWS), shared, zeros(kind))
        result.replace_all_uses_with(expand(product, ROWS, [batch, rows, columns]))
    op.erase()


def matmul(left: Value, right: Value, init: Value) -> Value:
    """Creates ``linalg.matmul`` at the current insertion point; returns its result."""
    loops = [ir.AffineDimExpr.get(number) for number in range(3)]
    maps = [ir.AffineMap.get(3, 0, [loops[a], loops[b]]) for a, b in ((0, 2), (2, 1), (0, 1))]
    op = ir.Operation.create(
        UNBATCHED,
        results=[init.type],
        operands=[left, right, init],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
        },
        regions=1,
    )
    add_body(op)
    return op.results[0]


def add_body(op: Op) -> None:
    """Creates the body of a matmul: a sum of products, whose factors are widened by their signs."""
    kinds = [each.type.element_type for each in op.operands]
    element = kinds[-1]
    block = op.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(block):
        first, second, total = (_widened(each, element) for each in block.arguments)
        is_integer = isinstance(element, ir.IntegerType)
        times, plus = ("arith.muli", "arith.addi") if is_integer else ("arith.mulf", "arith.addf")
        product = value(times, element, first, second)
        create("linalg.yield", [], [value(plus, element, total, product)])


def _widened(number: Value, element: ir.Type) -> Value:
    if number.type == element:
        return number
    is_integer = isinstance(element, ir.IntegerType)
    return value("arith.extsi" if is_integer else "arith.extf", element, number)


# ------------------------------------------------------------------------------
# Lets each contraction begin with zeros: what it adds to becomes an elementwise sum after it, an epilogue.
#
#   %r = linalg.conv_2d_nchw_fchw ins(%x, %w) outs(%bias)
# becomes
#   %c = linalg.conv_2d_nchw_fchw ins(%x, %w) outs(%zeros)
#   %r = linalg.generic ins(%c, %bias)  // c + bias


def begin_with_zeros(payload: TensorPayload) -> None:
    """Replaces initial values of contractions by zeros and a sum, in place."""
    for op in payload.ops:
        if op.name in CONTRACTIONS and not _begins_with_zeros(op):
            _split(op)


def _begins_with_zeros(op: Op) -> bool:
    init = inits_of(op)[0]
    producer = defining(init)
    return producer is not None and producer.name == FILL and number_of(init) == 0.0


def _split(op: Op) -> None:
    result, init = op.results[0], inits_of(op)[0]
    with ir.InsertionPoint(op), ir.Location.unknown():
        op.operands[len(op.operands) - 1] = zeros(result.type)
    with ir.InsertionPoint.after(op), ir.Location.unknown():
        total = summed(result, init)
    result.replace_all_uses_except(total.results[0], total)


TYPES, SUM = ["i8", "i8", "i64"], "i32"  # of a product that becomes another one, and of its sums then
TRUNCATED = ["arith.trunci", "linalg.yield"]  # the body of what reads them


def narrow_sums(payload: TensorPayload) -> None:
    """Replaces matmuls of i8 into i64 whose sums are only truncated to i32, in place.

    torch-mlir exports a product of integers with sums of i64, and truncates these to the type of the result:
    sums of i32 are the same numbers, modulo 2**32.

        %wide = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x6xi8>) outs(%zeros : tensor<8x6xi64>)
        %r = linalg.generic ins(%wide)  // arith.trunci
      becomes
        %r = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x6xi8>) outs(%zeros : tensor<8x6xi32>)
    """
    for op in payload.ops:
        if op.name in MATMULS and _is_product_of_bytes(op):
            readers = users(op.results[0])
            if readers and all(_truncates(each) for each in readers):
                _replace_sum(op, readers)


def _is_product_of_bytes(op: Op) -> bool:
    kinds = [str(each.type.element_type) for each in op.operands]
    return kinds == TYPES and not is_unsigned(op) and number_of(inits_of(op)[0]) == 0.0


def _truncates(op: Op) -> bool:
    """Returns whether an operation only truncates each element of a tensor to i32."""
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1:
        return False
    body = body_of(op)
    return (
        str(op.results[0].type.element_type) == SUM
        and all(is_parallel(op))
        and all(is_identity(each) for each in maps_of(op))
        and [each.name for each in body] == TRUNCATED
        and body[0].operands[0] == op.regions[0].blocks[0].arguments[0]
    )


def _replace_sum(op: Op, readers: list[Op]) -> None:
    """Creates the matmul with sums of i32 in place of what truncates them; the old one is left unused."""
    with ir.InsertionPoint(op), op.location:
        kind = ir.RankedTensorType.get(op.results[0].type.shape, ir.IntegerType.get_signless(32))
        made = ir.Operation.create(
            op.name,
            results=[kind],
            operands=[*inputs_of(op), zeros(kind)],
            attributes=attributes_of(op),
            regions=1,
        )
        add_body(made)
    for reader in readers:
        reader.results[0].replace_all_uses_with(made.results[0])


Loops = tuple[int, ...]
PLAIN: dict[str, tuple[Loops, Loops, Loops]] = {  # loops that A, B and C are indexed by
    "linalg.matmul": ((0, 2), (2, 1), (0, 1)),
    "linalg.batch_matmul": ((0, 1, 3), (0, 3, 2), (0, 1, 2)),
}


def transpose_operands(payload: TensorPayload) -> None:
    """Replaces matmuls of transposed operands by transposes and plain matmuls, in place.

    A weight is then transposed once, when the program is loaded:

        %r = linalg.matmul indexing_maps = [(m, k), (n, k), (m, n)] ins(%a, %b)
      becomes
        %t = linalg.generic ins(%b)  // transposed
        %r = linalg.matmul ins(%a, %t)
    """
    for op in payload.ops:
        if op.name in MATMULS and not is_plain(op) and is_transposed(op):
            _transpose(op)


def is_plain(op: Op) -> bool:
    """Returns whether a matmul's operands are m x k, k x n and m x n, each with the batch before."""
    return [dimensions(each) for each in maps_of(op)] == list(PLAIN[op.name])


def is_transposed(op: Op) -> bool:
    """Returns whether the operands of a matmul that is not plain are transposed, and not broadcast."""
    found = [dimensions(each) for each in maps_of(op)]
    plain = PLAIN[op.name]
    pairs = zip(found[:2], plain[:2], strict=True)
    return found[2] == plain[2] and all(one is not None and sorted(one) == sorted(two) for one, two in pairs)


def _transpose(op: Op) -> None:
    plain = PLAIN[op.name]
    with ir.InsertionPoint(op), op.location:
        for number, (mapping, wanted) in enumerate(zip(maps_of(op)[:2], plain, strict=False)):
            loops = dimensions(mapping)
            assert loops is not None
            if loops != wanted:
                order = [loops.index(each) for each in wanted]
                op.operands[number] = transposed(op.operands[number], order)
    count = maps_of(op)[0].n_dims
    op.attributes["indexing_maps"] = maps_attribute([selecting(count, loops) for loops in plain])


def transposed(tensor: Value, order: list[int]) -> Value:
    """Creates the transpose whose dimension i is dimension ``order[i]`` of a tensor."""
    kind, rank = tensor.type, len(order)
    element = kind.element_type
    target = empty([kind.shape[each] for each in order], element)
    op = ir.Operation.create(
        "linalg.generic",
        results=[target.type],
        operands=[tensor, target],
        attributes={
            "indexing_maps": maps_attribute(
                [selecting(rank, [order.index(each) for each in range(rank)]), selecting(rank, range(rank))]
            ),
            "iterator_types": parallel_loops(rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        create("linalg.yield", [], [block.arguments[0]])
    return op.results[0]


EXTENSIONS = {("bf16", "f32"): "arith.extf", ("i8", "i32"): "arith.extsi"}  # (narrow, wide) -> operation
RESHAPES = (COLLAPSE, EXPAND, SLICE)


def narrow_operands(payload: TensorPayload) -> None:
    """Replaces both operands of matmuls of extended bf16 or i8 by the narrow tensors, in place.

    torch-mlir exports a linear layer of bf16 with both operands extended to f32. The product of two bf16
    numbers is exact in f32, and sums stay f32, so nothing is rounded differently. Processors multiply pairs
    of bf16, and weights and activations take half of the memory. A product of i8 in PyTorch is one of both
    operands extended to i32, which is exact as well: sums wrap around alike.

        %a32 = linalg.generic ins(%a)  // arith.extf
        %b32 = linalg.generic ins(%b)  // arith.extf
        %r = linalg.matmul ins(%a32, %b32 : tensor<8x4xf32>, tensor<4x6xf32>) outs(%zeros : tensor<8x6xf32>)
      becomes
        %r = linalg.matmul ins(%a, %b : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%zeros : tensor<8x6xf32>)
    """
    for op in payload.ops:
        if op.name not in MATMULS or is_unsigned(op):
            continue
        if all(_is_narrow(operand) for operand in inputs_of(op)):
            for number, operand in enumerate(inputs_of(op)):
                _replace_operand(op, number, _narrowed(operand))


def _replace_operand(op: Op, number: int, tensor: Value) -> None:
    """Makes a matmul read another tensor, whose elements its body extends."""
    body = op.regions[0].blocks[0]
    element = body.arguments[number]
    wide = element.type
    uses = [(use.owner.operation, use.operand_number) for use in element.uses]
    op.operands[number] = tensor
    element.set_type(tensor.type.element_type)
    with ir.InsertionPoint.at_block_begin(body), op.location:
        extended = value(EXTENSIONS[str(element.type), str(wide)], wide, element)
    for user, place in uses:
        user.operands[place] = extended


def _is_narrow(tensor: Value) -> bool:
    """Returns whether a tensor was extended from a narrower type, and perhaps only moved after that."""
    op = defining(tensor)
    if op is None:
        return False
    is_moved = op.name in RESHAPES or bool(_transposition(op))
    return _is_narrow(op.operands[0]) if is_moved else is_extension(op)


def _narrowed(tensor: Value) -> Value:
    """Returns the tensor that was extended; creates its reshapes and transposes anew."""
    op = defining(tensor)
    assert op is not None
    order = _transposition(op)
    if order:
        source = _narrowed(op.operands[0])
        with ir.InsertionPoint(op), op.location:
            return transposed(source, order)
    if op.name not in RESHAPES:
        return op.operands[0]
    source = _narrowed(op.operands[0])
    kind = ir.RankedTensorType.get(tensor.type.shape, source.type.element_type)
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create(
            op.name,
            results=[kind],
            operands=[source, *list(op.operands)[1:]],
            attributes=attributes_of(op),
        )
    return made.results[0]


def _transposition(op: Op) -> list[int]:
    """Returns a transpose's order: the operand's dimensions as the result has them; [] for another op."""
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1 or not all(is_parallel(op)):
        return []
    source, target = maps_of(op)
    (last, *others), loops = body_of(op)[::-1], dimensions(source)
    is_copy = not others and last.operands[0] == op.regions[0].blocks[0].arguments[0]
    if not is_copy or not is_identity(target) or loops is None or len(loops) != target.n_dims:
        return []
    return [loops.index(each) for each in range(len(loops))]


def is_extension(op: Op) -> bool:
    """Returns whether an operation only extends each element of a tensor: bf16 to f32, or i8 to i32."""
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1:
        return False
    body = body_of(op)
    narrow, wide = (str(each.type.element_type) for each in (op.operands[0], op.results[0]))
    return (
        (narrow, wide) in EXTENSIONS
        and all(is_parallel(op))
        and all(is_identity(each) for each in maps_of(op))
        and [each.name for each in body] == [EXTENSIONS[narrow, wide], "linalg.yield"]
        and body[0].operands[0] == op.regions[0].blocks[0].arguments[0]
        and body[1].operands[0] == body[0].results[0]
    )
