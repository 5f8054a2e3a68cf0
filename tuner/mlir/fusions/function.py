"""Fusions as functions in MLIR: their ops, loops and arguments, and the form that scripts take."""

from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import (
    CONTRACTION_ATTRIBUTE,
    FUSION_ENTRY,
    ROOT_ATTRIBUTE,
    WEIGHT_ATTRIBUTE,
)
from tuner.core.quantization import BITS, QUANTIZATION
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.ir import building
from tuner.mlir.ir.linalg import round_late
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import maps_in, op_of, walk, walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.transform import parse

MATMULS = ("linalg.matmul", "linalg.batch_matmul")
# Elementwise producers become part of their consumer. The pass fuses reshapes badly: a fusion has none.
FUSE = "builtin.module(func.func(linalg-fuse-elementwise-ops,canonicalize,cse))"
STORE = "bufferization.materialize_in_destination"


def parse_fusion(text: str) -> ir.Module:
    """Returns the module of a ``Fusion``'s text.

    Raises CandidateError(BIND) for text that is not a fusion.
    """
    module = parse(text, "fusion")
    fusion_function(module)
    return module


def fusion_function(module: ir.Module) -> Op:
    """Returns the function ``@fusion`` of a module; raises CandidateError(BIND) for a module without one."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    for op in functions:
        if op.attributes["sym_name"].value == FUSION_ENTRY:
            return op
    raise CandidateError(Stage.BIND, f"fusion: found no function @{FUSION_ENTRY}")


def contractions(function: Op) -> list[Op]:
    """Returns the contractions and convolutions of a fusion: its ops with the attribute ``contraction``."""
    return walk_where(function, lambda op: CONTRACTION_ATTRIBUTE in op.attributes)


def iterators(op: Op) -> list[str]:
    """Returns the iterator types of a ``linalg.generic`` as MLIR text, one for each loop."""
    return list(map(str, ir.ArrayAttr(op.attributes["iterator_types"])))


def indexing_maps(op: Op) -> list[ir.AffineMap]:
    """Returns the indexing maps of a linalg op, one for each operand.

    For a named op other than a matmul or a transpose, these are identities, as of a copy.
    """
    if "indexing_maps" in op.attributes:
        return maps_in(op)
    if op.name in MATMULS:
        lead = [0] if op.name == "linalg.batch_matmul" else []
        m, n, k = (len(lead) + position for position in range(3))
        dims = list(map(ir.AffineDimExpr.get, range(k + 1)))
        orders = ((m, k), (k, n), (m, n))
        return [ir.AffineMap.get(k + 1, 0, [dims[number] for number in (*lead, *order)]) for order in orders]
    rank = ir.RankedTensorType(op.results[0].type).rank
    identity = ir.AffineMap.get_identity(rank)
    if op.name != "linalg.transpose":
        return [identity] * len(op.operands)
    order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    read = [ir.AffineDimExpr.get(order.index(dimension)) for dimension in range(rank)]
    return [ir.AffineMap.get(rank, 0, read), identity]


def loops_of(mapping: ir.AffineMap) -> list[int | None]:
    """Returns, for each result of an indexing map, the index of its loop, or None for an expression."""
    return [result.position if isinstance(result, ir.AffineDimExpr) else None for result in mapping.results]


def argument_of(tensor: Value) -> ir.BlockArgument | None:
    """Returns the function's argument whose elements a tensor has; None if it is computed."""
    read = op_of(tensor, "bufferization.to_tensor")
    argument = None if read is None else read.operands[0]
    return argument if isinstance(argument, ir.BlockArgument) else None


def loop_extents(op: Op) -> tuple[int, ...]:
    """Returns the extents of a linalg op's loops, in the order of its dimensions: (m, n, k) for a matmul."""
    shapes = [
        operand.type.shape if isinstance(operand.type, ir.RankedTensorType) else [] for operand in op.operands
    ]
    extents: dict[int, int] = {}
    for mapping, shape in zip(indexing_maps(op), shapes, strict=False):
        for loop, extent in zip(loops_of(mapping), shape, strict=False):
            if loop is not None:
                extents.setdefault(loop, extent)
    return tuple(extents[dimension] for dimension in sorted(extents))


def root_of(function: Op) -> Op | None:
    """Returns the op that computes a fusion's last output; None if no op does.

    It is the last op marked ``root``, else the op whose result is stored last.
    """
    marked = walk_where(function, lambda op: ROOT_ATTRIBUTE in op.attributes)
    if marked:
        return marked[-1].operation
    stored = [store.operands[0].owner for store in walk(function, STORE)]
    producers = [owner.operation for owner in stored if not isinstance(owner, ir.Block)]
    if producers:
        return producers[-1]
    return None


@dataclass(frozen=True)
class FusionArgument:
    """An argument of a fusion's function: a strided array that it reads or writes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements, one for each dimension; the code gets a pointer to the first element
    element: str  # MLIR type
    is_weight: bool  # the same numbers at each call
    is_output: bool
    bits: int = 8  # of an integer weight: 4 for numbers from -8 to 7

    @property
    def span(self) -> int:
        """Returns the elements of memory from the first to the last element, including gaps between rows."""
        steps = zip(self.shape, self.strides, strict=True)
        return 1 + sum((extent - 1) * stride for extent, stride in steps)


def fusion_arguments(text: str) -> tuple[FusionArgument, ...]:
    """Returns the inputs and then the outputs of a fusion; raises CandidateError(BIND) for other text."""
    with ir.Context(), ir.Location.unknown():
        module = parse_fusion(text)
        function = fusion_function(module)
        types = [ir.MemRefType(argument.type) for argument in function.regions[0].blocks[0].arguments]
        inputs = len(types) - len(walk(function, STORE))
        return tuple(
            FusionArgument(
                tuple(type_.shape),
                tuple(type_.get_strides_and_offset()[0]),
                str(type_.element_type),
                WEIGHT_ATTRIBUTE in argument_attributes(function, index),
                index >= inputs,
                _bits_of(argument_attributes(function, index)),
            )
            for index, type_ in enumerate(types)
        )


def _bits_of(attributes: dict[str, Attribute]) -> int:
    if BITS in attributes:
        return int(ir.IntegerAttr(attributes[BITS]).value)
    return 8


def prepare_matmul(module: ir.Module) -> None:
    """Brings a fusion that is a matmul into the form that scripts of matmuls take, in place.

    The epilogue is one ``linalg.generic``, on the sums in the memory of the output if their types are equal:

        %p = linalg.matmul {contraction} ins(%a, %b : ...) outs(%zeros : ...) -> tensor<8x4xf32>
        %r = linalg.generic {...} ins(%p, %bias : ...) outs(%empty : ...) attrs = {root} {
        ^bb0(%x: f32, %y: f32, %before: f32):
      becomes, where %zeros is %out filled with zeros
        %p = linalg.matmul {contraction} ins(%a, %b : ...) outs(%zeros : ...) -> tensor<8x4xf32>
        %r = linalg.generic {...} ins(%bias : ...) outs(%p : tensor<8x4xf32>) attrs = {root} {
        ^bb0(%y: f32, %x: f32):

    Raises CandidateError(COMPILE) where a pass fails.
    """
    function = fusion_function(module)
    if len(walk_where(function, is_structured)) > 1:
        run_passes(module, FUSE)
        function = fusion_function(module)
    round_late(function)
    (store,) = walk(function, STORE)
    (product,) = contractions(function)
    root = store.operands[0].owner.operation
    if root != product and _takes_sums_in_place(root, product):
        _finish_in_place(root, product)
        root = product
    _start_from_output(function, root, store)


def _takes_sums_in_place(root: Op, product: Op) -> bool:
    """Returns whether an epilogue reads its product once, element by element, and results have its type."""
    result = product.results[0]
    *inputs, written = indexing_maps(root)
    read = []
    for operand, mapping in zip(root.operands, inputs, strict=False):
        if operand == result:
            read.append(mapping)
    starts = list(root.regions[0].blocks[0].arguments[-1].uses)
    return result.type == root.results[0].type and read == [written] and not starts


def _finish_in_place(root: Op, product: Op) -> None:
    """Replaces an epilogue by one whose initial value is the product, not an input."""
    *operands, _ = root.operands
    number = operands.index(product.results[0])
    del operands[number]
    maps = list(ir.ArrayAttr(root.attributes["indexing_maps"]))
    del maps[number]
    with ir.InsertionPoint(root), root.location:
        finished = building.recreated(
            root,
            [root.results[0].type],
            [*operands, product.results[0]],
            indexing_maps=ir.ArrayAttr.get(maps),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 1]),
        )
    body = root.regions[0].blocks[0]
    body.append_to(finished.regions[0])
    body.arguments[number].replace_all_uses_with(body.arguments[len(operands) + 1])
    body.erase_argument(number)
    root.results[0].replace_all_uses_with(finished.results[0])
    root.erase()


def prepare(module: ir.Module) -> None:
    """Brings a fusion into the form that schedules take and that scripts find when they run, in place.

    - Chains of elementwise operations are one ``linalg.generic``.
    - The root has the attribute ``root``. It is not a contraction: one without an epilogue gets a copy.
    - The root starts from the memory of the output, so that nothing is copied there.

        %p = linalg.matmul {contraction, root} ins(%a, %b : ...) outs(%zeros : ...) -> tensor<8x4xf32>
        bufferization.materialize_in_destination %p in restrict writable %out : ...
      becomes
        %c = bufferization.to_tensor %out restrict writable : memref<8x4xf32> to tensor<8x4xf32>
        %p = linalg.matmul {contraction} ins(%a, %b : ...) outs(%zeros : ...) -> tensor<8x4xf32>
        %r = linalg.generic {...} ins(%p : tensor<8x4xf32>) outs(%c : tensor<8x4xf32>) attrs = {root} {
        ^bb0(%x: f32, %before: f32):
          linalg.yield %x : f32
        } -> tensor<8x4xf32>
        bufferization.materialize_in_destination %r in restrict writable %out : ...

    A quantized matmul stays as it is. Raises CandidateError(COMPILE) where a pass fails.
    """
    function = fusion_function(module)
    if QUANTIZATION in function.attributes:
        return  # its strategy takes the text as it is
    for fill in walk(function, "linalg.fill"):  # the sums of a contraction are not kept in the output
        with ir.InsertionPoint(fill), fill.location:
            fill.operands[1] = building.value("tensor.empty", fill.results[0].type)
    if len(walk_where(function, is_structured)) > 1:  # a single copy would be folded away
        run_passes(module, FUSE)
        function = fusion_function(module)
    round_late(function)
    for op in walk_where(function, lambda op: ROOT_ATTRIBUTE in op.attributes):
        del op.attributes[ROOT_ATTRIBUTE]
    for store in walk(function, STORE):
        producer = store.operands[0].owner
        if (
            isinstance(producer, ir.Block)
            or not is_structured(producer)
            or CONTRACTION_ATTRIBUTE in producer.attributes
        ):
            producer = _copy_before(store)
        producer.attributes[ROOT_ATTRIBUTE] = ir.UnitAttr.get()
        _start_from_output(function, producer.operation, store)


def is_structured(op: Op) -> bool:
    """Returns whether an op is a linalg op with loops: not ``linalg.yield`` or ``linalg.index``."""
    return bool(op.name.startswith("linalg.") and op.name not in ("linalg.yield", "linalg.index"))


def _copy_before(store: Op) -> Op:
    type_ = ir.RankedTensorType(store.operands[0].type)
    with ir.InsertionPoint(store), store.location:
        empty = building.value("tensor.empty", type_)
        identity = building.dimensions(type_.rank)
        loops = [building.PARALLEL] * type_.rank
        copy = building.generic(
            [store.operands[0]], empty, [identity, identity], loops, lambda number, _: number
        )
    store.operands[0] = copy.results[0]
    return copy


def _start_from_output(function: Op, root: Op, store: Op) -> None:
    """Makes the output's memory the initial value of the root's result, through fills."""
    memory = store.operands[1]
    number = ir.OpResult(store.operands[0]).result_number
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), root.location:
        unit = ir.UnitAttr.get()
        start = building.value(
            "bufferization.to_tensor", store.operands[0].type, memory, restrict=unit, writable=unit
        )
    user = root
    operand = len(root.operands) - len(root.results) + number
    while user.operands[operand].owner.name == "linalg.fill":
        user = user.operands[operand].owner.operation
        operand = 1
    if user is root and _reads_init(root, number):
        with ir.InsertionPoint(root), root.location:
            start = building.copied_tensor(user.operands[operand], start)
    user.operands[operand] = start


def _reads_init(root: Op, number: int) -> bool:
    """Returns whether an operation computes a result from its initial value, unless this is empty."""
    values = root.regions[0].blocks[0].arguments
    made_empty = op_of(root.operands[len(root.operands) - len(root.results) + number], "tensor.empty")
    return made_empty is None and bool(list(values[len(values) - len(root.results) + number].uses))
