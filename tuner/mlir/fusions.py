"""Fusions as functions in MLIR: their canonical text, their arguments, and the problem that is tuned."""

from dataclasses import dataclass
from math import prod

from tuner.core.constant_weights import CONSTANT_ATTRIBUTE
from tuner.core.dtypes import CPU_DTYPES, NUMBER_TYPES, natural_output, number_type
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.fusion_facts import (
    BYTES,
    CHANNELS,
    CONTRACTIONS,
    COPY,
    DIMENSIONS,
    LAYOUT,
    LOOPS_ATTRIBUTE,
    PRODUCTS,
    REDUCED,
    ROWS_ATTRIBUTE,
    STRIDED,
    TRANSPOSED,
    VISIBLE,
    WEIGHTS,
    FusionFacts,
)
from tuner.core.fusions import (
    ATTENTION,
    CONTRACTION,
    CONTRACTION_ATTRIBUTE,
    CONVOLUTION,
    ELEMENTWISE,
    FUSION_ENTRY,
    LOOPS,
    QUANTIZED,
    ROOT_ATTRIBUTE,
    ROWS,
    WEIGHT_ATTRIBUTE,
    Fusion,
)
from tuner.core.problem_classes import FusedProblem, PackedProblem, TextProblem, quantized_problem
from tuner.core.quantization import BITS, CONSTANT, QUANTIZATION, WeightFormat
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.epilogues import epilogue_of
from tuner.mlir.ir import building
from tuner.mlir.ir.convolutions import LAYOUTS, ConvolutionForm, convolution_form, zero_planes
from tuner.mlir.ir.linalg import is_unsigned, round_late
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import maps_in, op_of, types_of, walk, walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.transform import parse

MATMULS = ("linalg.matmul", "linalg.batch_matmul")
# Elementwise producers become part of their consumer. The pass fuses reshapes badly: a fusion has none.
FUSE = "builtin.module(func.func(linalg-fuse-elementwise-ops,canonicalize,cse))"
REDUCTION = "#linalg.iterator_type<reduction>"
STRIDES = "strides"  # of a convolution: one for each dimension of its window
STORE = "bufferization.materialize_in_destination"
KINDS = (
    CONTRACTION,
    CONVOLUTION,
    ATTENTION,
    QUANTIZED,
    ROWS,
    ELEMENTWISE,
)  # of fusions that a shipped strategy is for
# Loops m, n, k that A, B and C of a matmul are indexed by
LOOPS_OF_LAYOUTS = {
    "nn": [[0, 2], [2, 1], [0, 1]],
    "nt": [[0, 2], [1, 2], [0, 1]],
    "tn": [[2, 0], [2, 1], [0, 1]],
}
MATRIX_RANK = 2
MATMUL_ARGUMENTS = 3  # A, B and C, without those of an epilogue
INTEGER_PRODUCT = ("i8", "i8", natural_output("i8"))  # element types of A, B and C


def parse_fusion(text: str) -> ir.Module:
    """Returns the module of a ``Fusion``'s text.

    Raises CandidateError(BIND) for text that is not a fusion.
    """
    module = parse(text, "fusion")
    fusion_function(module)
    return module


def fusion_function(module: ir.Module) -> Op:
    """Returns the function FUSION_ENTRY of a module; raises CandidateError(BIND) for a module without one."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    for op in functions:
        if op.attributes["sym_name"].value == FUSION_ENTRY:
            return op
    raise CandidateError(Stage.BIND, f"fusion: found no function @{FUSION_ENTRY}")


def annotate_facts(module: ir.Module) -> None:
    """Sets the attributes that describe a fusion on its function, in place: loops, products, bytes, layouts.

    ``read_facts`` reads them as ``FusionFacts``.
    """
    function = fusion_function(module)
    root = _root(function)
    is_product = root is not None and CONTRACTION_ATTRIBUTE in root.attributes  # then a copy becomes the root
    extents = () if root is None else tuple(root.results[0].type.shape) if is_product else loop_extents(root)
    wide = ir.IntegerType.get_signless(64)
    attributes: dict[str, Attribute] = {
        LOOPS_ATTRIBUTE: ir.DenseI64ArrayAttr.get(list(extents)),
        CONTRACTIONS: ir.IntegerAttr.get(wide, len(contractions(function))),
        TRANSPOSED: ir.IntegerAttr.get(wide, 0 if root is None or is_product else transposed_loop(root)),
        WEIGHTS: ir.IntegerAttr.get(wide, sum(map(_reads_weight, contractions(function)))),
        COPY: ir.IntegerAttr.get(wide, int(_is_copy(function))),
        BYTES: ir.IntegerAttr.get(wide, sum(map(_bytes, function.regions[0].blocks[0].arguments))),
    }
    named = [op for op in contractions(function) if op.name in LAYOUTS]
    if named:
        form = convolution_form(named[0])
        summed = 1 if form.is_depthwise else named[0].operands[1].type.shape[form.weights.index("c")]
        attributes |= {DIMENSIONS: ir.StringAttr.get(form.output), CHANNELS: ir.IntegerAttr.get(wide, summed)}
        if any(zero_planes(named[0])):
            attributes[PRODUCTS] = ir.IntegerAttr.get(wide, _products(named[0], form))
    reductions = [op for op in walk(function, "linalg.generic") if REDUCTION in iterators(op)]
    if reductions and not contractions(function):
        rows = loop_extents(reductions[0])
        reduced = iterators(reductions[0]).index(REDUCTION)
        if rows != extents or reduced != len(rows) - 1:
            attributes |= {
                ROWS_ATTRIBUTE: ir.DenseI64ArrayAttr.get(list(rows)),
                REDUCED: ir.IntegerAttr.get(wide, reduced),
            }
    if any(_is_strided(argument.type, len(extents)) for argument in function.regions[0].blocks[0].arguments):
        attributes[STRIDED] = ir.IntegerAttr.get(wide, 1)
    layout = _layout_of_matmul(function)
    if layout:
        attributes[LAYOUT] = ir.StringAttr.get(layout)
    for name, attribute in attributes.items():
        function.attributes[name] = attribute


def facts_of(text: str) -> FusionFacts:
    """Returns the facts of a fusion's text, as ``read_facts`` does.

    Without the attributes of ``annotate_facts`` there are no loops, and numbers are 0. Raises
    CandidateError(BIND) for text that is not a fusion.
    """
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return read_facts(parse_fusion(text))


def read_facts(module: ir.Module) -> FusionFacts:
    """Returns the facts that ``annotate_facts`` set as attributes, and those that a fusion's ops show.

    Raises CandidateError(BIND) for a module without such a function.
    """
    function = fusion_function(module)
    arguments = range(len(function.regions[0].blocks[0].arguments))
    masks = [marks for number in arguments if VISIBLE in (marks := argument_attributes(function, number))]
    visible = tuple(ir.DenseI64ArrayAttr(masks[0][VISIBLE])) if masks else None
    return FusionFacts(
        loops=_extents_in(function, LOOPS_ATTRIBUTE),
        rows=_extents_in(function, ROWS_ATTRIBUTE),
        contractions=_number_in(function, CONTRACTIONS),
        weights=_number_in(function, WEIGHTS),
        transposed=_number_in(function, TRANSPOSED),
        copy=_number_in(function, COPY),
        bytes=_number_in(function, BYTES),
        dimensions=_text_in(function, DIMENSIONS),
        channels=_number_in(function, CHANNELS),
        products=_number_in(function, PRODUCTS),
        stride=_row_stride(function) if DIMENSIONS in function.attributes else 0,
        strided=_number_in(function, STRIDED),
        reduced=_number_in(function, REDUCED),
        visible=None if visible is None else (visible[0], visible[1]),
        elements=_elements(function),
        epilogue=_epilogue(function),
        output=_output(function),
        layout=_text_in(function, LAYOUT),
        weights_format=CONSTANT if CONSTANT_ATTRIBUTE in function.attributes else quantization_of(function),
    )


def quantization_of(function: Op) -> str:
    """Returns the text of a quantized matmul's WeightFormat; "" for other fusions."""
    return _text_in(function, QUANTIZATION)


def quantization_in(text: str) -> WeightFormat:
    """Returns the format of the weights of a quantized matmul, by its text.

    Raises CandidateError(BIND) for text that is not a fusion, UsageError for another fusion.
    """
    with ir.Context(), ir.Location.unknown():
        return WeightFormat.of_text(quantization_of(fusion_function(parse_fusion(text))))


def _extents_in(function: Op, name: str) -> tuple[int, ...]:
    if name in function.attributes:
        return tuple(ir.DenseI64ArrayAttr(function.attributes[name]))
    return ()


def _number_in(function: Op, name: str) -> int:
    if name in function.attributes:
        return int(ir.IntegerAttr(function.attributes[name]).value)
    return 0


def _text_in(function: Op, name: str) -> str:
    if name in function.attributes:
        return str(ir.StringAttr(function.attributes[name]).value)
    return ""


def _row_stride(function: Op) -> int:
    """Returns the stride of a convolution along a row: the last of its strides."""
    strides = (op.attributes[STRIDES] for op in contractions(function) if STRIDES in op.attributes)
    return next((list(ir.DenseIntElementsAttr(stride))[-1] for stride in strides), 1)


def _epilogue(function: Op) -> str:
    products = contractions(function)
    root = _root(function)
    if len(products) == 1 and root is not None:
        return epilogue_of(products[0], root)
    return ""


def _layout_of_matmul(function: Op) -> str:
    """Returns the layout of a fusion that is a matmul: "nn", "nt" or "tn"; "" for another fusion.

    An epilogue of the table follows its product. Its arguments differ, and have adjacent columns; A and
    B are activations, of types that a matmul has.
    """
    epilogue = _epilogue(function)
    arguments = list(function.regions[0].blocks[0].arguments)
    if not epilogue or len(arguments) != len(EPILOGUES[epilogue].arguments) + MATMUL_ARGUMENTS:
        return ""
    (product,) = contractions(function)
    if any(map(_is_weight, product.operands)) or any(map(_has_strided_columns, arguments)):
        return ""
    return matmul_layout(product)


def _has_strided_columns(argument: Value) -> bool:
    return _is_strided(argument.type, MATRIX_RANK)


def matmul_layout(op: Op) -> str:
    """Returns the layout of a ``linalg.matmul`` whose types and depth a problem may have; else ""."""
    a, b, sums = map(_element_of, op.operands)
    if op.name != MATMULS[0] or a != b or a not in CPU_DTYPES or sums != natural_output(a) or is_unsigned(op):
        return ""
    depth_limit = number_type(a).depth_limit
    if depth_limit and loop_extents(op)[2] > depth_limit:
        return ""
    maps = list(map(_loops, indexing_maps(op)))
    for layout, loops in LOOPS_OF_LAYOUTS.items():
        if loops == maps:
            return layout
    return ""


def _element_of(tensor: Value) -> str:
    return str(tensor.type.element_type)


def _output(function: Op) -> str:
    stored = [ir.ShapedType(op.operands[1].type) for op in walk(function, STORE)]
    if stored:
        return str(stored[-1].element_type)
    return ""


def _elements(function: Op) -> tuple[str, ...]:
    types = types_of(function.regions[0].blocks[0].arguments)
    types += [result.type for op in walk_where(function, lambda _: True) for result in op.results]
    shaped = [ir.ShapedType(type_) for type_ in types if isinstance(type_, ir.ShapedType)]
    return tuple(sorted({str(type_.element_type) for type_ in shaped}))


def _products(op: Op, form: ConvolutionForm) -> int:
    """Returns how many products a convolution of volumes sums up, without those of planes of zeros."""
    first, last = zero_planes(op)
    volume, weights, sums = (operand.type.shape for operand in op.operands)
    planes = range(first, volume[form.input.index("D")] - last)
    taps = [tap * form.dilations[0] for tap in range(weights[form.weights.index("d")])]
    results = range(sums[form.output.index("D")])
    read: int = sum(plane * form.strides[0] + tap in planes for plane in results for tap in taps)
    filters = weights[form.weights.index("f")]
    made: int = prod(sums) * prod(weights) // filters  # with those of zeros
    return made * read // (len(taps) * len(results))


def _is_strided(argument: ir.MemRefType, loops: int) -> bool:
    strides, _ = ir.MemRefType(argument).get_strides_and_offset()
    return len(strides) == loops > 0 and strides[-1] != 1


def iterators(op: Op) -> list[str]:
    """Returns the iterator types of a ``linalg.generic`` as MLIR text, one for each loop."""
    return list(map(str, ir.ArrayAttr(op.attributes["iterator_types"])))


def contractions(function: Op) -> list[Op]:
    """Returns the contractions and convolutions of a fusion: its ops with the attribute ``contraction``."""
    return walk_where(function, lambda op: CONTRACTION_ATTRIBUTE in op.attributes)


def loop_extents(op: Op) -> tuple[int, ...]:
    """Returns the extents of a linalg op's loops, in the order of its dimensions: (m, n, k) for a matmul."""
    shapes = [
        operand.type.shape if isinstance(operand.type, ir.RankedTensorType) else [] for operand in op.operands
    ]
    extents: dict[int, int] = {}
    for mapping, shape in zip(indexing_maps(op), shapes, strict=False):
        for loop, extent in zip(_loops(mapping), shape, strict=False):
            if loop is not None:
                extents.setdefault(loop, extent)
    return tuple(extents[dimension] for dimension in sorted(extents))


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


def transposed_loop(op: Op) -> int:
    """Returns 1 + the number of the loop along which a transposed operand is contiguous.

    0 if none is transposed.
    """
    maps = indexing_maps(op)
    for mapping in maps:
        loops = _loops(mapping)
        last = mapping.n_dims - 1
        if loops and last in loops[:-1] and loops[-1] is not None:
            return loops[-1] + 1
    return 0


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
    if len(walk_where(function, _is_structured)) > 1:
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
    if len(walk_where(function, _is_structured)) > 1:  # a single copy would be folded away
        run_passes(module, FUSE)
        function = fusion_function(module)
    round_late(function)
    for op in walk_where(function, lambda op: ROOT_ATTRIBUTE in op.attributes):
        del op.attributes[ROOT_ATTRIBUTE]
    for store in walk(function, STORE):
        producer = store.operands[0].owner
        if (
            isinstance(producer, ir.Block)
            or not _is_structured(producer)
            or CONTRACTION_ATTRIBUTE in producer.attributes
        ):
            producer = _copy_before(store)
        producer.attributes[ROOT_ATTRIBUTE] = ir.UnitAttr.get()
        _start_from_output(function, producer.operation, store)


def _is_copy(function: Op) -> bool:
    ops = walk_where(function, _is_structured)
    if len(ops) != 1 or CONTRACTION_ATTRIBUTE in ops[0].attributes:
        return False
    if ops[0].name != "linalg.generic":
        return True
    body = list(ops[0].regions[0].blocks[0].operations)
    return len(body) == 1 and isinstance(body[0].operands[0], ir.BlockArgument)


def _is_structured(op: Op) -> bool:
    return bool(op.name.startswith("linalg.") and op.name not in ("linalg.yield", "linalg.index"))


def _root(function: Op) -> Op | None:
    marked = walk_where(function, lambda op: ROOT_ATTRIBUTE in op.attributes)
    if marked:
        return marked[-1].operation
    stored = [store.operands[0].owner for store in walk(function, STORE)]
    producers = [owner.operation for owner in stored if not isinstance(owner, ir.Block)]
    if producers:
        return producers[-1]
    return None


def _bytes(argument: Value) -> int:
    type_ = ir.MemRefType(argument.type)
    elements: int = prod(type_.shape)
    return elements * number_type(str(type_.element_type)).bytes


def _reads_weight(contraction: Op) -> bool:
    return _is_weight(contraction.operands[1])


def _is_weight(operand: Value) -> bool:
    tensor = op_of(operand, "bufferization.to_tensor")
    argument = None if tensor is None else tensor.operands[0]
    if not isinstance(argument, ir.BlockArgument):
        return False
    function = argument.owner.owner.operation
    return WEIGHT_ATTRIBUTE in argument_attributes(function, argument.arg_number)


def _loops(mapping: ir.AffineMap) -> list[int | None]:
    return [result.position if isinstance(result, ir.AffineDimExpr) else None for result in mapping.results]


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
            start = building.copied(user.operands[operand], start)
    user.operands[operand] = start


def _reads_init(root: Op, number: int) -> bool:
    """Returns whether an operation computes a result from its initial value, unless this is empty."""
    values = root.regions[0].blocks[0].arguments
    made_empty = op_of(root.operands[len(root.operands) - len(root.results) + number], "tensor.empty")
    return made_empty is None and bool(list(values[len(values) - len(root.results) + number].uses))


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
                WEIGHT_ATTRIBUTE in argument_attributes(function, number),
                number >= inputs,
                _bits_of(argument_attributes(function, number)),
            )
            for number, type_ in enumerate(types)
        )


def _bits_of(attributes: dict[str, Attribute]) -> int:
    if BITS in attributes:
        return int(ir.IntegerAttr(attributes[BITS]).value)
    return 8


def fusion_problem(fusion: Fusion) -> TextProblem:
    """Returns the problem that is tuned for a fusion, which is also the key of stored results.

    Its sizes are: for a contraction (m, n, k), and its batch; for an attention those of its scores: queries,
    keys and the width that is summed up; for a convolution (filters of a group, pixels of an image of the
    output, elements that are summed up for each), and images times groups; for an elementwise operation
    (elements but for the last dimension, last dimension, 1); the same for rows, of their reductions' loops.

    Sizes must be static. Raises UsageError for a fusion that no schedule is for, or whose text does not
    parse; for text of a quantized matmul that does not parse, CandidateError(BIND).
    """
    if fusion.kind not in KINDS:
        why = f": {fusion.reason}" if fusion.kind == LOOPS and fusion.reason else ""
        raise UsageError(f"fusion: found kind {fusion.kind}, allowed {', '.join(KINDS)}{why}")
    if fusion.kind == QUANTIZED:
        return _quantized_problem(fusion.text)
    with ir.Context(), ir.Location.unknown():  # no script runs: tuner's transform ops are not needed
        try:
            module = parse_fusion(fusion.text)
            annotate_facts(module)
        except CandidateError as error:
            raise UsageError(str(error)) from None
        products = contractions(fusion_function(module))
        has_product = fusion.kind in (ATTENTION, CONTRACTION) and bool(products)
        sizes = loop_extents(products[0]) if has_product else ()
        if fusion.kind == CONVOLUTION and products:
            convolution = _convolution_sizes(products[0])
        else:
            convolution = (1, (1, 1, 1))
        if has_product:
            _require_known_product(products[0])
        dtype = _element_type(products[0] if products else None, module)
        text = str(module)
        facts = read_facts(module)
    if fusion.kind in (ATTENTION, CONTRACTION):
        batch = prod(sizes[:-3])
        (m, n, k) = sizes[-3:]
        return FusedProblem(fusion.kind, (m, n, k), dtype, batch=batch, text=text, facts=facts)
    if fusion.kind == CONVOLUTION:
        batch, (m, n, k) = convolution
        return FusedProblem(CONVOLUTION, (m, n, k), dtype, batch=batch, text=text, facts=facts)
    loops = facts.rows or facts.loops or (1,)
    return FusedProblem(fusion.kind, (prod(loops[:-1]), loops[-1], 1), dtype, text=text, facts=facts)


def _quantized_problem(text: str) -> PackedProblem:
    a, b, *_, c = fusion_arguments(text)
    form = quantization_in(text)
    (m, k), (n, _) = a.shape, b.shape
    return quantized_problem((m, n, k), a.element, form, c.element)


def _require_known_product(op: Op) -> None:
    a, b, c = (operand.type.element_type for operand in op.operands)
    if not any(isinstance(element, ir.IntegerType) for element in (a, b, c)):
        return
    if (str(a), str(b), str(c)) != INTEGER_PRODUCT:
        raise UsageError(f"fusion: found a product of {a} and {b} into {c}, allowed i8 and i8 into i32")
    if is_unsigned(op):
        raise UsageError("fusion: found a product of unsigned i8, allowed signed i8")


def _convolution_sizes(op: Op) -> tuple[int, tuple[int, int, int]]:
    if op.name not in LAYOUTS:
        raise UsageError(f"fusion: found {op.name}, allowed {', '.join(LAYOUTS)}")
    form = convolution_form(op)
    sizes = dict(zip(form.weights, op.operands[1].type.shape, strict=True))
    sizes |= dict(zip(form.output, op.results[0].type.shape, strict=True))
    batch = prod(sizes[dimension] for dimension in form.output if dimension in "ng")
    pixels = prod(sizes[dimension] for dimension in form.output if dimension in "DHW")
    summed = prod(sizes[dimension] for dimension in form.reduced)
    return batch, (sizes[form.filters], pixels, summed)


def _element_type(contraction: Op | None, module: ir.Module) -> str:
    output = fusion_function(module).regions[0].blocks[0].arguments[-1]
    read = output.type if contraction is None else contraction.operands[0].type
    element = str(ir.ShapedType(read).element_type)
    if element not in NUMBER_TYPES:
        raise UsageError(f"fusion: found elements of {element}, allowed {', '.join(NUMBER_TYPES)}")
    return element
