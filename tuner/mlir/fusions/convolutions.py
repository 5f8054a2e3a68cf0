"""Named convolutions of linalg: their dimensions, strides and dilations, and planes of zeros."""

from dataclasses import dataclass, replace

from tuner.core.fusion_facts import ZERO_PLANES
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import is_zero, op_of

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
PAD = "tensor.pad"
YIELD = "tensor.yield"
PADDED = "linalg.depthwise_conv_2d_nchw_chw"  # whose schedule takes padding that is not in memory
MOST_COLUMNS = 128  # of its result: rows are computed as a whole, by code as long as they are
MOST_WINDOW = 25  # elements: of larger ones the schedule is not the fastest everywhere


@dataclass(frozen=True)
class ConvolutionForm:
    """The dimensions of a named convolution's operands, one letter each, with its strides and dilations.

    n images, g groups, f filters, c channels; D H W planes, rows and columns of the output, in ``input`` of
    the input; d h w of the window.
    """

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
        """Returns whether the convolution does not sum over channels: each one has its own output."""
        return "c" in self.output

    @property
    def reduced(self) -> str:
        """Returns the letters of the dimensions that are summed up: the window's, then c unless depthwise."""
        if self.is_depthwise:
            return self.window
        return f"{self.window}c"

    @property
    def filters(self) -> str:
        """Returns the letter of the output's dimension of filters: f, or c for a depthwise convolution."""
        if self.is_depthwise:
            return "c"
        return "f"


def convolution_form(op: Op) -> ConvolutionForm:
    """Returns the form of a named convolution; raises KeyError for a name that is not in LAYOUTS."""
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


def is_padding_of_zeros(op: Op) -> bool:
    """Returns whether ``op`` is a ``tensor.pad`` of static amounts, none below 0, by the number 0."""
    if op.name != PAD or len(op.operands) > 1:
        return False
    *_, end = (inner.operation for inner in op.regions[0].blocks[0].operations)
    amounts = (*op.attributes["static_low"], *op.attributes["static_high"])
    return min(amounts) >= 0 and is_zero(end.operands[0])


def takes_padding(op: Op) -> bool:
    """Returns whether the schedule for a convolution whose zero padding is not in memory takes ``op``.

    It takes a depthwise convolution of f32 or f64 with few columns of output and a small window.
    """
    if op.name != PADDED or not isinstance(op.results[0].type.element_type, ir.F32Type | ir.F64Type):
        return False
    columns: int = op.results[0].type.shape[-1]
    rows, width = op.operands[1].type.shape[-2:]
    window: int = rows * width
    return columns <= MOST_COLUMNS and window <= MOST_WINDOW
