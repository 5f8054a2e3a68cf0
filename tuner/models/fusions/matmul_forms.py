"""Brings matmuls, and operands of convolutions, into the forms that schedules take, in place.

The steps, in the order in which ``pipeline.form_text`` calls them: ``transpose_operands``,
``narrow_operands`` (bf16 and i8 in place of their extensions), ``narrow_sums`` (of i8 into i64),
``begin_with_zeros``, ``merge_batches``, ``take_transposes``. Only the order of sums may change. ``matmul``
and ``add_body`` create operations.
"""

from collections.abc import Sequence
from math import prod

from tuner.core.dtypes import natural_output
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.convolutions import convolution_form
from tuner.mlir.fusions.facts import matmul_layout
from tuner.mlir.fusions.operations import (
    COLLAPSE,
    CONTRACTIONS,
    CONVOLUTIONS,
    EXPAND,
    GENERIC,
    MATMULS,
    PAD,
    SLICE,
    VIEWS,
    body_of,
    defining,
    dimensions,
    inits_of,
    inputs_of,
    is_identity,
    is_parallel,
    users,
)
from tuner.mlir.ir.building import create, recreated, value, zero
from tuner.mlir.ir.linalg import CAST, EXTEND_UNSIGNED, UNSIGNED, is_unsigned
from tuner.mlir.ir.reading import maps_in, op_of, set_operands, uses_of
from tuner.models.fusions.generics import (
    collapse,
    expand,
    maps_attribute,
    selecting,
    summed,
    transposed,
    zeros,
)
from tuner.models.fusions.payload import TensorPayload
from tuner.models.fusions.views import moved_loops, number_of, padding_number, transposition_of

BATCHED = "linalg.batch_matmul"
UNBATCHED = "linalg.matmul"
Loops = tuple[int, ...]
PLAIN: dict[str, tuple[Loops, Loops, Loops]] = {  # loops that A, B and C are indexed by
    UNBATCHED: ((0, 2), (2, 1), (0, 1)),
    BATCHED: ((0, 1, 3), (0, 3, 2), (0, 1, 2)),
}
EXTENSIONS = {("bf16", "f32"): "arith.extf", ("i8", "i32"): "arith.extsi"}  # (narrow, wide) -> operation
RESHAPES = (COLLAPSE, EXPAND, SLICE)
NARROW = "i8"  # elements of A and B of a matmul whose sums are to be narrowed
SUM = natural_output(NARROW)
# Of a convolution of i8, of channels first and without strides: with fewer products in a sum, loops over i32
# took .25 to .8 of the time of its first schedule; with 144 they took 21 times it. With a window of one pixel
# and 4 products .54, with 16 1.3 times it.
LEAST_SUMMED = 128
FEW_CHANNELS = 16
INTEGER_OPS = ("arith.extsi", "arith.muli", "arith.addi")
FLOAT_OPS = ("arith.extf", "arith.mulf", "arith.addf")
# Of a matmul that reads B transposed: with fewer, but for one row, its schedules took 1.0 to 1.6 times as
# long as a transpose and schedules of layout nn.
LEAST_COLUMNS = 256
ROWS = [[0, 1], [2]]  # dimensions of A and C: batch and rows become rows


def transpose_operands(payload: TensorPayload) -> None:
    """Replaces matmuls of transposed operands by transposes and plain matmuls, in place.

    A weight is then transposed once, at compile time (``hoist``):

        %r = linalg.matmul indexing_maps = [(m, k), (n, k), (m, n)] ins(%a, %b)
      becomes
        %t = linalg.generic ins(%b)  // transposed
        %r = linalg.matmul ins(%a, %t)
    """
    for op in payload.ops:
        if has_transposed_operand(op) and is_plain_but_for_order(op):
            make_plain(op)


def has_transposed_operand(op: Op) -> bool:
    """Returns whether an operation is a matmul that is not plain (``is_plain``)."""
    return op.name in MATMULS and not is_plain(op)


def is_plain(op: Op) -> bool:
    """Returns whether a matmul's operands are m x k, k x n and m x n, in this order of their dimensions.

    For a ``linalg.batch_matmul`` the batch dimension is first in each of them.
    """
    return list(map(dimensions, maps_in(op))) == list(PLAIN[op.name])


def is_plain_but_for_order(op: Op) -> bool:
    """Returns whether a matmul differs from a plain one at most by the order of dimensions of A and of B.

    True for a plain matmul too; False if an operand is broadcast.
    """
    operand_loops = list(map(dimensions, maps_in(op)))
    plain = PLAIN[op.name]
    pairs = zip(operand_loops[:2], plain[:2], strict=True)
    return operand_loops[2] == plain[2] and all(
        loops is not None and sorted(loops) == sorted(two) for loops, two in pairs
    )


def make_plain(op: Op) -> list[Op]:
    """Makes a matmul plain by transposes of its transposed operands, in place; returns the transposes."""
    plain = PLAIN[op.name]
    created = []
    with ir.InsertionPoint(op), op.location:
        for index, (mapping, wanted) in enumerate(zip(maps_in(op)[:2], plain, strict=False)):
            loops = dimensions(mapping)
            assert loops is not None
            if loops != wanted:
                order = list(map(loops.index, wanted))
                op.operands[index] = transposed(op.operands[index], order)
                created.append(op.operands[index].owner.operation)
    _set_loops(op, plain)
    return created


def _set_loops(op: Op, loops_of_operands: Sequence[Loops]) -> None:
    count = maps_in(op)[0].n_dims
    op.attributes["indexing_maps"] = maps_attribute([selecting(count, loops) for loops in loops_of_operands])


def take_transposes(payload: TensorPayload, first_weight: int) -> None:
    """Makes matmuls of two activations read the sources of transposes, in place of the transposed operands.

    Schedules of matmuls read either layout, and nothing is transposed in memory then. Called after ``hoist``:
    weights are arguments from ``first_weight`` on, and are transposed already. Not changed: transposes that
    others read, too, and a transposed B of few columns (LEAST_COLUMNS) if the matmul has several rows.

        %t = linalg.generic ins(%b)  // transposed
        %r = linalg.matmul ins(%a, %t)

    becomes

        %r = linalg.matmul indexing_maps = [(m, k), (n, k), (m, n)] ins(%a, %b)
    """
    for op in payload.ops:
        if op.name != UNBATCHED or not matmul_layout(op):
            continue
        if any(_is_of_weight(operand, first_weight) for operand in inputs_of(op)):
            continue
        rows, columns = op.results[0].type.shape
        operands = (1, 0) if rows == 1 or columns >= LEAST_COLUMNS else (0,)
        for operand in operands:  # a schedule is for one transposed operand
            transpose = defining(op.operands[operand])
            if transpose is None or transposition_of(transpose) != (1, 0) or not is_plain(op):
                continue
            if users(transpose.results[0]) != [op] or op.operands[0] == op.operands[1]:
                continue
            op.operands[operand] = transpose.operands[0]
            loops = list(PLAIN[UNBATCHED])
            loops[operand] = loops[operand][::-1]
            _set_loops(op, loops)
            transpose.erase()


def _is_of_weight(tensor: Value, first_weight: int) -> bool:
    """Returns whether a tensor is a weight, or a view of one."""
    while (op := op_of(tensor, *VIEWS)) is not None:
        tensor = op.operands[0]
    return isinstance(tensor.owner, ir.Block) and tensor.arg_number >= first_weight


def narrow_operands(payload: TensorPayload, *, of_convolutions: bool) -> None:
    """Replaces both operands of products of extended numbers by the narrow tensors, in place.

    Of matmuls those of bf16 and i8; with ``of_convolutions`` also those of i8 of convolutions, but for
    depthwise ones: no schedule multiplies i32. Padding by zeros then pads the narrow tensor.

    torch-mlir exports linear layers of bf16 extended to f32, products of i8 extended to i32. The product of
    two bf16 numbers is exact in f32, and sums stay f32; integers wrap around alike. Processors multiply pairs
    of bf16, and operands take half of the memory.

        %a32 = linalg.generic ins(%a)  // arith.extf
        %b32 = linalg.generic ins(%b)  // arith.extf
        %r = linalg.matmul ins(%a32, %b32 : tensor<8x4xf32>, tensor<4x6xf32>) outs(%zeros : tensor<8x6xf32>)
      becomes
        %r = linalg.matmul ins(%a, %b : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%zeros : tensor<8x6xf32>)
    """
    for op in payload.ops:
        is_narrowed = op.name in MATMULS or (of_convolutions and _is_convolution_of_integers(op))
        if not is_narrowed or is_unsigned(op):
            continue
        if all(map(_is_narrow, inputs_of(op))):
            for index, operand in enumerate(inputs_of(op)):
                _replace_operand(op, index, _narrowed(operand))


def _is_convolution_of_integers(op: Op) -> bool:
    """Returns whether an operation is a convolution of i32 that would be faster as one of i8."""
    if op.name not in CONVOLUTIONS or str(op.results[0].type.element_type) != SUM:
        return False
    form = convolution_form(op)
    sizes = dict(zip(form.weights, op.operands[1].type.shape, strict=True))
    summed = prod(size for name, size in sizes.items() if name not in (form.filters, "g"))
    least = LEAST_SUMMED
    if summed == sizes["c"]:  # a window of one pixel
        least = FEW_CHANNELS
    is_short = summed < least
    is_by_rows = form.input[-1] == "W" and set(form.strides) == {1}
    return not form.is_depthwise and not (is_short and is_by_rows)


def _is_narrow(tensor: Value) -> bool:
    """Returns whether a tensor was extended from a narrower type, and perhaps only moved or padded after."""
    op = defining(tensor)
    if op is None:
        return False
    is_padded = op.name == PAD and padding_number(op) == 0
    if is_padded or op.name in RESHAPES or transposition_of(op):
        return _is_narrow(op.operands[0])
    return is_extension(op)


def is_extension(op: Op) -> bool:
    """Returns whether an operation only extends each element of a tensor: bf16 to f32, or i8 to i32."""
    name = conversion_of(op)
    return name is not None and name == EXTENSIONS.get(
        (str(op.operands[0].type.element_type), str(op.results[0].type.element_type))
    )


def conversion_of(op: Op) -> str | None:
    """Returns the name of the one operation that a generic applies to each element, such as "arith.extf".

    None for an operation that is not a generic, or that does more: moves elements, reads several inputs, or
    applies several operations.
    """
    if op.name != GENERIC or len(inputs_of(op)) != 1 or len(op.results) != 1 or not all(is_parallel(op)):
        return None
    body = body_of(op)
    if len(body) != 2 or not all(map(is_identity, maps_in(op))):
        return None
    computed, end = body
    is_of_input = list(computed.operands) == [op.regions[0].blocks[0].arguments[0]]
    return computed.name if is_of_input and end.operands[0] == computed.results[0] else None


def _narrowed(tensor: Value) -> Value:
    """Returns the tensor that was extended; creates its reshapes and transposes anew."""
    op = defining(tensor)
    assert op is not None
    order = transposition_of(op)
    if order:
        source = _narrowed(op.operands[0])
        with ir.InsertionPoint(op), op.location:
            return transposed(source, order)
    if op.name == PAD:
        return _padded(op, _narrowed(op.operands[0]))
    if op.name not in RESHAPES:
        return op.operands[0]
    source = _narrowed(op.operands[0])
    type_ = ir.RankedTensorType.get(tensor.type.shape, source.type.element_type)
    with ir.InsertionPoint(op), op.location:
        return recreated(op, [type_], [source, *list(op.operands)[1:]]).results[0]


def _padded(pad: Op, source: Value) -> Value:
    """Creates the padding of ``pad``, which is zeros, around a tensor of another type of numbers."""
    type_ = ir.RankedTensorType.get(pad.results[0].type.shape, source.type.element_type)
    with ir.InsertionPoint(pad), pad.location:
        padding = zero(type_.element_type)
        padded = recreated(pad, [type_], [source])
        block = padded.regions[0].blocks.append(*[ir.IndexType.get()] * len(type_.shape))
        with ir.InsertionPoint(block):
            create("tensor.yield", (), [padding])
    return padded.results[0]


def _replace_operand(op: Op, number: int, tensor: Value) -> None:
    body = op.regions[0].blocks[0]
    element = body.arguments[number]
    wide = element.type
    uses = uses_of(element)
    op.operands[number] = tensor
    element.set_type(tensor.type.element_type)
    with ir.InsertionPoint.at_block_begin(body), op.location:
        extended = value(EXTENSIONS[str(element.type), str(wide)], wide, element)
    set_operands(uses, extended)


def narrow_sums(payload: TensorPayload) -> None:
    """Replaces matmuls of i8 into i64 whose sums are only truncated to i32, in place: equal modulo 2**32.

    torch-mlir exports products of integers in this form.

        %wide = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x6xi8>) outs(%zeros : tensor<8x6xi64>)
        %r = linalg.generic ins(%wide)  // arith.trunci
      becomes
        %r = linalg.matmul ins(%a, %b : tensor<8x4xi8>, tensor<4x6xi8>) outs(%zeros : tensor<8x6xi32>)
    """
    for op in payload.ops:
        if op.name not in MATMULS:
            continue
        elements = [str(operand.type.element_type) for operand in op.operands]
        if elements != [NARROW, NARROW, "i64"]:
            continue
        readers = users(op.results[0])
        are_truncated = readers and all(
            conversion_of(reader) == "arith.trunci" and str(reader.results[0].type.element_type) == SUM
            for reader in readers
        )
        if not are_truncated or is_unsigned(op) or number_of(inits_of(op)[0]) != 0.0:
            continue
        with ir.InsertionPoint(op), op.location:
            type_ = ir.RankedTensorType.get(op.results[0].type.shape, ir.IntegerType.get_signless(32))
            narrow = recreated(op, [type_], [*inputs_of(op), zeros(type_)])
            add_body(narrow)
        for reader in readers:  # the wide matmul has no users now: ``clean_up`` erases it
            reader.results[0].replace_all_uses_with(narrow.results[0])


def begin_with_zeros(payload: TensorPayload) -> None:
    """Makes each contraction start from zeros, in place: another initial value is added to its result.

      %r = linalg.matmul ins(%a, %b) outs(%c)
    becomes
      %p = linalg.matmul ins(%a, %b) outs(%zeros)
      %r = linalg.generic ins(%p, %c)  // arith.addf
    """
    for op in payload.ops:
        if op.name not in CONTRACTIONS or number_of(inits_of(op)[0]) == 0.0:
            continue
        result = op.results[0]
        init = inits_of(op)[0]
        with ir.InsertionPoint(op), ir.Location.unknown():
            op.operands[len(op.operands) - 1] = zeros(result.type)
        with ir.InsertionPoint.after(op), ir.Location.unknown():
            total = summed(result, init)
        result.replace_all_uses_except(total.results[0], total)


def merge_batches(payload: TensorPayload) -> None:
    """Replaces a batch_matmul whose B is one matrix, repeated, by one matmul of more rows, in place.

    The batch_matmul must start from zeros (``begin_with_zeros``).
    """
    for op in payload.ops:
        if op.name != BATCHED or is_unsigned(op):  # the matmul that is made extends by sign
            continue
        repeated = defining(op.operands[1])
        if repeated is None or not is_broadcast(repeated) or dimensions(maps_in(repeated)[0]) != (1, 2):
            continue
        result = op.results[0]
        batch, rows, columns = result.type.shape
        type_ = ir.RankedTensorType.get([batch * rows, columns], result.type.element_type)
        with ir.InsertionPoint(op), op.location:
            product = matmul(collapse(op.operands[0], ROWS), repeated.operands[0], zeros(type_))
            result.replace_all_uses_with(expand(product, ROWS, [batch, rows, columns]))
        op.erase()


def is_broadcast(op: Op) -> bool:
    """Returns whether a generic only repeats its only input along further dimensions."""
    loops = moved_loops(op)
    return loops is not None and len(loops) < maps_in(op)[0].n_dims


def matmul(left: Value, right: Value, init: Value, *, is_unsigned: bool = False) -> Value:
    """Creates ``linalg.matmul``, or ``linalg.batch_matmul`` of three dimensions; returns its result.

    ``is_unsigned``: narrower integers are extended with zeros.
    """
    rank = init.type.rank
    name = UNBATCHED if rank == 2 else BATCHED
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
        "indexing_maps": maps_attribute([selecting(rank + 1, loops) for loops in PLAIN[name]]),
    }
    if is_unsigned:
        attributes[CAST] = ir.Attribute.parse(f"#linalg.type_fn<{UNSIGNED}>")
    op = ir.Operation.create(
        name, results=[init.type], operands=[left, right, init], attributes=attributes, regions=1
    )
    add_body(op)
    return op.results[0]


def add_body(op: Op) -> None:
    """Creates the body of a contraction: it adds the product of two factors to the sum.

    Narrower factors are extended to the type of the sum first, integers as the operation says.
    """
    kinds = [operand.type.element_type for operand in op.operands]
    element = kinds[-1]
    block = op.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(block):
        is_integer = isinstance(element, ir.IntegerType)
        widen, times, plus = INTEGER_OPS if is_integer else FLOAT_OPS
        if is_unsigned(op):
            widen = EXTEND_UNSIGNED
        first, second, total = (
            argument if argument.type == element else value(widen, element, argument)
            for argument in block.arguments
        )
        product = value(times, element, first, second)
        create("linalg.yield", [], [value(plus, element, total, product)])
