"""Forms of linalg ops: named convolutions, integer extension of matmuls, epilogues, rounding to bf16."""

from dataclasses import dataclass, replace

from tuner.core.fusions import ZERO_PLANES
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import attributes_of, function_type, name_of, op_of, ops_in, walk

# Pipeline: named ops become linalg.generic
GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"

# Dimensions of input, weights and output: n images, g groups, f filters, c channels, D H W planes, rows and
# columns of the output (in the input: its own), d h w of the window.
LAYOUTS = {
    "linalg.conv_1d_ncw_fcw": ("ncW", "fcw", "nfW"),
    "linalg.conv_1d_nwc_wcf": ("nWc", "wcf", "nWf"),
    "linalg.conv_2d_nchw_fchw": ("ncHW", "fchw", "nfHW"),
    "linalg.conv_2d_nhwc_hwcf": ("nHWc", "hwcf", "nHWf"),
    "linalg.conv_2d_nhwc_fhwc": ("nHWc", "fhwc", "nHWf"),
    "linalg.conv_2d_ngchw_gfchw": ("ngcHW", "gfchw", "ngfHW"),
    "linalg.conv_2d_nhwgc_gfhwc": ("nHWgc", "gfhwc", "nHWgf"),
    "linalg.conv_3d_ncdhw_fcdhw": ("ncDHW", "fcdhw", "nfDHW"),
    "linalg.depthwise_conv_1d_ncw_cw": ("ncW", "cw", "ncW"),
    "linalg.depthwise_conv_1d_nwc_wc": ("nWc", "wc", "nWc"),
    "linalg.depthwise_conv_2d_nchw_chw": ("ncHW", "chw", "ncHW"),
    "linalg.depthwise_conv_2d_nhwc_hwc": ("nHWc", "hwc", "nHWc"),
}
SUFFIX = "_epilogue"
# attributes of the scalar function's arguments
ARGUMENT = "tuner.argument"
DIMENSIONS = "tuner.dimensions"
# attribute of a matmul, and the name in its value
CAST = "cast"
UNSIGNED = "cast_unsigned"
ROUND = "arith.truncf"
COMPARE = "arith.cmpf"
SELECT = "arith.select"


@dataclass(frozen=True)
class ConvolutionForm:
    """The dimensions of a named convolution's operands, by letters as in LAYOUTS, and its steps."""

    input: str
    weights: str
    output: str
    strides: tuple[int, ...]  # pixels of the input between pixels of the output, for each of D H W
    dilations: tuple[int, ...]  # pixels of the input between elements of the window, for each of d h w

    @property
    def window(self) -> str:
        return "".join(weight for weight in self.weights if weight in "dhw")

    @property
    def is_depthwise(self) -> bool:
        """Returns whether each channel is convolved on its own, so that the output has the channels."""
        return "c" in self.output

    @property
    def reduced(self) -> str:
        """Returns the dimensions that are summed up: the window, then the channels if the output has none."""
        if self.is_depthwise:
            return self.window
        return f"{self.window}c"

    @property
    def filters(self) -> str:
        """Returns the dimension of the output that the filters are: f, of a depthwise convolution c."""
        if self.is_depthwise:
            return "c"
        return "f"


def convolution_form(op: Op) -> ConvolutionForm:
    """Returns the form of a named convolution, whose name must be in LAYOUTS."""
    unit = ConvolutionForm(*LAYOUTS[op.name], (), ())
    strides, dilations = (
        tuple(map(int, ir.DenseIntElementsAttr(op.attributes[name])))
        if name in op.attributes
        else (1,) * len(unit.window)
        for name in ("strides", "dilations")
    )
    return replace(unit, strides=strides, dilations=dilations)


def zero_planes(op: Op) -> tuple[int, int]:
    """Returns how many planes at the start and at the end of a convolution's input are marked as zeros.

    (0, 0) where the input is not a function argument with this mark.
    """
    source = op_of(op.operands[0], "bufferization.to_tensor")
    argument = None if source is None else source.operands[0]
    if not isinstance(argument, ir.BlockArgument) or not isinstance(argument.owner, ir.Block):
        return (0, 0)
    marks = argument_attributes(argument.owner.owner.operation, argument.arg_number)
    if ZERO_PLANES not in marks:
        return (0, 0)
    first, last = ir.DenseI64ArrayAttr(marks[ZERO_PLANES])
    return first, last


def find_epilogue(function: Op) -> Op | None:
    """Returns the scalar function ``@f_epilogue`` next to the func.func ``@f``; None if there is none.

    ``tuner.set_aside_epilogue`` makes this function, ``tuner.finish_stores`` applies it::

        func.func private @f_epilogue(
            %sum: f32, %bias: f32 {tuner.argument = 2 : i64, tuner.dimensions = array<i64: 1>}) -> f32

    Each argument but the first is an element of an argument of ``@f``, number ``tuner.argument``, indexed by
    the dimensions of C that ``tuner.dimensions`` lists. Bodies are straight-line arith and math ops.
    """
    wanted = name_of(function) + SUFFIX
    siblings = ops_in(function.parent.regions[0].blocks[0])
    return next((op for op in siblings if op.name == "func.func" and name_of(op) == wanted), None)


def output_type(epilogue: Op) -> Type:
    """Returns the result type of an epilogue, a scalar function: the element type of the final output."""
    return function_type(epilogue).results[0]


def apply_epilogue(epilogue: Op, function: Op, sums: Value, indices: list[Value]) -> Value:
    """Creates the ops of an epilogue on a vector of adjacent sums of a row of C; returns the result vector.

    ``function``: the kernel, whose arguments are loaded from. ``indices``: row and column of the first sum in
    C.
    """
    width = ir.VectorType(sums.type).shape[0]
    block = epilogue.regions[0].blocks[0]
    known = {block.arguments[0]: sums}
    for number, argument in list(enumerate(block.arguments))[1:]:
        known[argument] = _load(epilogue, number, function, indices, width)
    for op in ops_in(block):
        if op.name == "func.return":
            return known[op.operands[0]]
        results = [ir.VectorType.get([width], result.type) for result in op.results]
        attributes = attributes_of(op)
        if op.name == "arith.constant":
            attributes["value"] = ir.DenseElementsAttr.get_splat(results[0], attributes["value"])
        operands = [known[operand] for operand in op.operands]
        known.update(zip(op.results, create(op.name, results, operands, **attributes).results, strict=True))
    raise AssertionError("a function ends with func.return")


def _load(epilogue: Op, number: int, function: Op, indices: list[Value], width: int) -> Value:
    attributes = argument_attributes(epilogue, number)
    source = function.regions[0].blocks[0].arguments[ir.IntegerAttr(attributes[ARGUMENT]).value]
    dimensions = list(ir.DenseI64ArrayAttr(attributes[DIMENSIONS]))
    element = ir.MemRefType(source.type).element_type
    kind = ir.VectorType.get([width], element)
    at = [indices[dimension] for dimension in dimensions]
    if dimensions[-1:] == [len(indices) - 1]:
        return value("vector.load", kind, source, *at)
    return value("vector.broadcast", kind, value("memref.load", element, source, *at))


def is_unsigned(op: Op) -> bool:
    """Returns whether a matmul or batch_matmul extends integers with zeros, not with their signs."""
    return CAST in op.attributes and UNSIGNED in str(op.attributes[CAST])


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
    limit = _constant_of(compare.operands[1])
    of_bf16 = isinstance(rounded.type, ir.BF16Type) and isinstance(wide.type, ir.F32Type)
    # one branch is the rounded number, the other the constant compared with
    roundings = [op_of(operand, ROUND) for operand in list(select.operands)[1:]]
    chosen = [op is not None and op == rounding for op in roundings]
    others = list(map(_constant_of, list(select.operands)[1:]))
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


def _constant_of(number: Value) -> float | None:
    op = op_of(number, "arith.constant")
    found = None if op is None else op.attributes["value"]
    if isinstance(found, ir.FloatAttr):
        return float(found.value)
    return None
