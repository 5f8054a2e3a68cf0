"""The facts of a fusion, which are attributes of its function, and the problem that is tuned for it.

``annotate_facts`` finds the facts and writes the attributes; ``read_facts`` and ``facts_of`` read them as
FusionFacts; ``fusion_problem`` makes the tuning problem.
"""

from math import prod

from tuner.core.constant_weights import CONSTANT_ATTRIBUTE
from tuner.core.dtypes import CPU_DTYPES, NUMBER_TYPES, natural_output, number_type
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import CandidateError, UsageError
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
    LOOPS,
    QUANTIZED,
    ROWS,
    WEIGHT_ATTRIBUTE,
    Fusion,
)
from tuner.core.problem_classes import FusedProblem, PackedProblem, TextProblem, quantized_problem
from tuner.core.quantization import CONSTANT, QUANTIZATION, WeightFormat
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.epilogues import epilogue_of
from tuner.mlir.fusions.convolutions import LAYOUTS, ConvolutionForm, convolution_form, zero_planes
from tuner.mlir.fusions.function import (
    MATMULS,
    STORE,
    argument_of,
    contractions,
    fusion_arguments,
    fusion_function,
    indexing_maps,
    is_structured,
    iterators,
    loop_extents,
    loops_of,
    parse_fusion,
    root_of,
)
from tuner.mlir.ir.linalg import is_unsigned
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import types_of, walk, walk_where

REDUCTION = "#linalg.iterator_type<reduction>"
STRIDES = "strides"  # of a convolution: one for each dimension of its window
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


def annotate_facts(module: ir.Module) -> None:
    """Sets the attributes that describe a fusion on its function, in place: loops, products, bytes, layouts.

    ``read_facts`` reads them as ``FusionFacts``. Raises CandidateError(BIND) for a module that is not a
    fusion.
    """
    function = fusion_function(module)
    root = root_of(function)
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
    """Returns the facts of a fusion's text, from its attributes and its ops.

    Without the attributes that ``annotate_facts`` sets there are no loops, and numbers are 0. Raises
    CandidateError(BIND) for text that is not a fusion.
    """
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return read_facts(parse_fusion(text))


def read_facts(module: ir.Module) -> FusionFacts:
    """Returns the facts that ``annotate_facts`` set as attributes, and those that a fusion's ops show.

    Raises CandidateError(BIND) for a module without the function of a fusion.
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
    """Returns the WeightFormat of a quantized matmul as text; "" for other fusions.

    ``function``: the function of the fusion.
    """
    return _text_in(function, QUANTIZATION)


def quantization_in(text: str) -> WeightFormat:
    """Returns the format of the weights of a quantized matmul; ``text``: the fusion's MLIR text.

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
    root = root_of(function)
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
    """Returns "nn", "nt" or "tn", the layout of a ``linalg.matmul`` that can be a tuned problem; else "".

    "" for another op, for types or a depth k that a problem may not have, and for unsigned integers.
    """
    if op.name != MATMULS[0]:
        return ""
    a, b, sums = map(_element_of, op.operands)
    if a != b or a not in CPU_DTYPES or sums != natural_output(a) or is_unsigned(op):
        return ""
    depth_limit = number_type(a).depth_limit
    if depth_limit and loop_extents(op)[2] > depth_limit:
        return ""
    maps = list(map(loops_of, indexing_maps(op)))
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


def transposed_loop(op: Op) -> int:
    """Returns 1 + the index of the loop along which a transposed operand is contiguous.

    0 if no operand is transposed.
    """
    maps = indexing_maps(op)
    for mapping in maps:
        loops = loops_of(mapping)
        last = mapping.n_dims - 1
        if loops and last in loops[:-1] and loops[-1] is not None:
            return loops[-1] + 1
    return 0


def _is_copy(function: Op) -> bool:
    ops = walk_where(function, is_structured)
    if len(ops) != 1 or CONTRACTION_ATTRIBUTE in ops[0].attributes:
        return False
    if ops[0].name != "linalg.generic":
        return True
    body = list(ops[0].regions[0].blocks[0].operations)
    return len(body) == 1 and isinstance(body[0].operands[0], ir.BlockArgument)


def _bytes(argument: Value) -> int:
    type_ = ir.MemRefType(argument.type)
    elements: int = prod(type_.shape)
    return elements * number_type(str(type_.element_type)).bytes


def _reads_weight(contraction: Op) -> bool:
    return _is_weight(contraction.operands[1])


def _is_weight(operand: Value) -> bool:
    argument = argument_of(operand)
    if argument is None:
        return False
    function = argument.owner.owner.operation
    return WEIGHT_ATTRIBUTE in argument_attributes(function, argument.arg_number)


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
