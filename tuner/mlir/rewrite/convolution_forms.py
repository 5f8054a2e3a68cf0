"""The named convolutions of linalg: which dimensions their operands have, and in which order."""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, ir

# Dimensions of input, weights and output: n images, g groups, f filters, c channels, H W rows and columns of
# the output (in the input: its own), h w of the window.
LAYOUTS = {
    "linalg.conv_1d_ncw_fcw": ("ncW", "fcw", "nfW"),
    "linalg.conv_1d_nwc_wcf": ("nWc", "wcf", "nWf"),
    "linalg.conv_2d_nchw_fchw": ("ncHW", "fchw", "nfHW"),
    "linalg.conv_2d_nhwc_hwcf": ("nHWc", "hwcf", "nHWf"),
    "linalg.conv_2d_nhwc_fhwc": ("nHWc", "fhwc", "nHWf"),
    "linalg.conv_2d_ngchw_gfchw": ("ngcHW", "gfchw", "ngfHW"),
    "linalg.conv_2d_nhwgc_gfhwc": ("nHWgc", "gfhwc", "nHWgf"),
    "linalg.depthwise_conv_1d_ncw_cw": ("ncW", "cw", "ncW"),
    "linalg.depthwise_conv_1d_nwc_wc": ("nWc", "wc", "nWc"),
    "linalg.depthwise_conv_2d_nchw_chw": ("ncHW", "chw", "ncHW"),
    "linalg.depthwise_conv_2d_nhwc_hwc": ("nHWc", "hwc", "nHWc"),
}


@dataclass(frozen=True)
class ConvolutionForm:
    """The dimensions of a named convolution's operands, by letters as in LAYOUTS, and its steps."""

    input: str
    weights: str
    output: str
    strides: tuple[int, ...]  # pixels of the input between pixels of the output, for each of H W
    dilations: tuple[int, ...]  # pixels of the input between elements of the window, for each of h w

    @property
    def window(self) -> str:
        """Returns the dimensions of the window: hw, or w of a convolution along one dimension."""
        return "".join(each for each in self.weights if each in "hw")

    @property
    def is_depthwise(self) -> bool:
        """Returns whether each channel is convolved on its own, so that the output has the channels."""
        return "c" in self.output

    @property
    def reduced(self) -> str:
        """Returns the dimensions that are summed up: the window, then the channels if the output has none."""
        return self.window if self.is_depthwise else f"{self.window}c"

    @property
    def filters(self) -> str:
        """Returns the dimension of the output that the filters are: f, of a depthwise convolution c."""
        return "c" if self.is_depthwise else "f"


def convolution_form(op: Op) -> ConvolutionForm:
    """Returns the form of a named convolution, whose name must be in LAYOUTS."""
    strides, dilations = (
        tuple(int(each) for each in ir.DenseIntElementsAttr(op.attributes[name]))
        for name in ("strides", "dilations")
    )
    return ConvolutionForm(*LAYOUTS[op.name], strides, dilations)
