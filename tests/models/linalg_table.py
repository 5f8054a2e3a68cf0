"""Every named operation of linalg once: its attributes, the types of its operands, and of its result.

A type without sizes is that of a number. Attributes stand before ``ins``, or after ``outs`` where the form
says so; pack and unpack have a form of their own.
"""

from dataclasses import dataclass

UNARY = (
    "abs",
    "ceil",
    "erf",
    "exp",
    "floor",
    "log",
    "negf",
    "reciprocal",
    "round",
    "rsqrt",
    "sqrt",
    "square",
)
BINARY = ("add", "div", "max", "min", "mul", "powf", "sub")
GRID = "3x5xf32"


@dataclass(frozen=True)
class LinalgOp:
    """An operation of linalg on tensors, as a program has it."""

    name: str
    operands: tuple[str, ...]
    result: str
    attributes: str = ""
    after: str = ""  # attributes that stand at the end

    @property
    def text(self) -> str:
        """Returns a program whose arguments are the operands, and last what the result begins as."""
        types = [*map(_type, self.operands), _type(self.result)]
        arguments = ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(types))
        names = ", ".join(f"%x{number}" for number in range(len(self.operands)))
        start = f"%x{len(self.operands)}"
        ins = f"ins({names} : {', '.join(types[:-1])})"
        line = f"linalg.{self.name} {self.attributes} {ins} outs({start} : {types[-1]}) {self.after}"
        if self.name in ("pack", "unpack"):
            line = f"linalg.{self.name} %x0 {self.attributes} into {start} : {types[0]} -> {types[-1]}"
        elif self.name not in ("map", "reduce", "broadcast", "transpose"):
            line += f" -> {types[-1]}"
        return f"func.func @main({arguments}) -> {types[-1]} {{\n%r = {line}\nreturn %r : {types[-1]}\n}}"


def _type(name: str) -> str:
    if name == "rank 0":
        return "tensor<f32>"
    return f"tensor<{name}>" if "x" in name else name


def _window(*strides: int, dilation: int = 1) -> str:
    rank = len(strides)
    numbers = f"tensor<{rank}xi64>"
    return f"{{dilations = dense<{dilation}> : {numbers}, strides = dense<{list(strides)}> : {numbers}}}"


LINE = _window(2)
PLANE = _window(2, 1)
SPACE = _window(1, 1, 1, dilation=2)
TILES = "inner_dims_pos = [0, 1] inner_tiles = [2, 5]"
MAPS = (f"affine_map<(a, b, c) -> ({loops})>" for loops in ("a, c", "b, c", "a, b"))
PRODUCT = f"indexing_maps = [{', '.join(MAPS)}]"


def _of(text: str, window: str = "") -> tuple[LinalgOp, ...]:
    """Returns the operations of lines ``name: operand, operand -> result``."""
    made = []
    for line in text.strip().splitlines():
        name, types = line.strip().split(": ")
        operands, result = types.split(" -> ")
        made.append(LinalgOp(name, tuple(operands.split(", ")), result, window))
    return tuple(made)


TABLE = (
    *(LinalgOp(name, (GRID,), GRID) for name in (*UNARY, "tanh", "copy")),
    *(LinalgOp(name, (GRID, GRID), GRID) for name in BINARY),
    LinalgOp("map", (GRID, GRID), GRID, "{ arith.addf }"),
    LinalgOp("elementwise", (GRID, GRID), GRID, "kind=#linalg.elementwise_kind<add>"),
    LinalgOp("contract", ("4x7xf32", "5x7xf32"), "4x5xf32", PRODUCT),
    LinalgOp("softmax", ("6x37xf32",), "6x37xf32", "dimension(1)"),
    LinalgOp("reduce", ("4x5xf32",), "5xf32", "{ arith.addf }", "dimensions = [0]"),
    LinalgOp("broadcast", ("3xf32",), GRID, after="dimensions = [1]"),
    LinalgOp("transpose", ("5x3xf32",), GRID, after="permutation = [1, 0]"),
    LinalgOp("pack", ("4x15xf32",), "2x3x2x5xf32", TILES),
    LinalgOp("unpack", ("2x3x2x5xf32",), "4x15xf32", TILES),
    *_of("""
        div_unsigned: 3x5xi32, 3x5xi32 -> 3x5xi32
        select: 3x5xi1, 3x5xf32, 3x5xf32 -> 3x5xf32
        fill: f32 -> 3x5xf32
        fill_rng_2d: f64, f64, i32 -> 4x6xf32
        matmul: 4x7xf32, 7x5xf32 -> 4x5xf32
        quantized_matmul: 4x7xi8, 7x5xi8, i32, i32 -> 4x5xi32
        batch_matmul: 2x4x7xf32, 2x7x5xf32 -> 2x4x5xf32
        quantized_batch_matmul: 2x4x7xi8, 2x7x5xi8, i32, i32 -> 2x4x5xi32
        batch_reduce_matmul: 2x4x7xf32, 2x7x5xf32 -> 4x5xf32
        matvec: 4x7xf32, 7xf32 -> 4xf32
        vecmat: 7xf32, 7x4xf32 -> 4xf32
        batch_matvec: 2x4x7xf32, 2x7xf32 -> 2x4xf32
        batch_vecmat: 2x7xf32, 2x7x4xf32 -> 2x4xf32
        dot: 9xf32, 9xf32 -> rank 0
        mmt4d: 2x3x4x1xf32, 5x3x6x1xf32 -> 2x5x4x6xf32
        batch_mmt4d: 2x2x3x4x1xf32, 2x5x3x6x1xf32 -> 2x2x5x4x6xf32
        conv_1d: 12xf32, 3xf32 -> 10xf32
        conv_2d: 8x9xf32, 3x2xf32 -> 6x8xf32
        conv_3d: 5x6x7xf32, 2x3x2xf32 -> 4x4x6xf32
    """),
    *_of(
        """
        conv_1d_ncw_fcw: 2x3x11xf32, 4x3x3xf32 -> 2x4x5xf32
        conv_1d_nwc_wcf: 2x11x3xf32, 3x3x4xf32 -> 2x5x4xf32
        depthwise_conv_1d_ncw_cw: 2x3x11xf32, 3x3xf32 -> 2x3x5xf32
        depthwise_conv_1d_nwc_wc: 2x11x3xf32, 3x3xf32 -> 2x5x3xf32
        depthwise_conv_1d_nwc_wcm: 2x11x3xf32, 3x3x2xf32 -> 2x5x3x2xf32
        pooling_ncw_max: 2x3x11xf32, 3xf32 -> 2x3x5xf32
        pooling_ncw_sum: 2x3x11xf32, 3xf32 -> 2x3x5xf32
        pooling_nwc_max: 2x11x3xf32, 3xf32 -> 2x5x3xf32
        pooling_nwc_min: 2x11x3xf32, 3xf32 -> 2x5x3xf32
        pooling_nwc_sum: 2x11x3xf32, 3xf32 -> 2x5x3xf32
        pooling_nwc_max_unsigned: 2x11x3xi8, 3xi8 -> 2x5x3xi8
        pooling_nwc_min_unsigned: 2x11x3xi8, 3xi8 -> 2x5x3xi8
        """,
        LINE,
    ),
    *_of(
        """
        conv_2d_nchw_fchw: 2x3x7x8xf32, 4x3x3x2xf32 -> 2x4x3x7xf32
        conv_2d_nchw_fchw_q: 2x3x7x8xi8, 4x3x3x2xi8, i32, i32 -> 2x4x3x7xi32
        conv_2d_ngchw_fgchw: 2x2x3x7x8xf32, 4x2x3x3x2xf32 -> 2x2x4x3x7xf32
        conv_2d_ngchw_gfchw: 2x2x3x7x8xf32, 2x4x3x3x2xf32 -> 2x2x4x3x7xf32
        conv_2d_ngchw_gfchw_q: 2x2x3x7x8xi8, 2x4x3x3x2xi8, i32, i32 -> 2x2x4x3x7xi32
        conv_2d_nhwc_fhwc: 2x7x8x3xf32, 4x3x2x3xf32 -> 2x3x7x4xf32
        conv_2d_nhwc_fhwc_q: 2x7x8x3xi8, 4x3x2x3xi8, i32, i32 -> 2x3x7x4xi32
        conv_2d_nhwc_hwcf: 2x7x8x3xf32, 3x2x3x4xf32 -> 2x3x7x4xf32
        conv_2d_nhwc_hwcf_q: 2x7x8x3xi8, 3x2x3x4xi8, i32, i32 -> 2x3x7x4xi32
        conv_2d_nhwgc_gfhwc: 2x7x8x2x3xf32, 2x4x3x2x3xf32 -> 2x3x7x2x4xf32
        conv_2d_nhwgc_gfhwc_q: 2x7x8x2x3xi8, 2x4x3x2x3xi8, i32, i32 -> 2x3x7x2x4xi32
        depthwise_conv_2d_nchw_chw: 2x3x7x8xf32, 3x3x2xf32 -> 2x3x3x7xf32
        depthwise_conv_2d_nhwc_hwc: 2x7x8x3xf32, 3x2x3xf32 -> 2x3x7x3xf32
        depthwise_conv_2d_nhwc_hwc_q: 2x7x8x3xi8, 3x2x3xi8, i32, i32 -> 2x3x7x3xi32
        depthwise_conv_2d_nhwc_hwcm: 2x7x8x3xf32, 3x2x3x2xf32 -> 2x3x7x3x2xf32
        depthwise_conv_2d_nhwc_hwcm_q: 2x7x8x3xi8, 3x2x3x2xi8, i32, i32 -> 2x3x7x3x2xi32
        pooling_nchw_max: 2x3x7x8xf32, 3x2xf32 -> 2x3x3x7xf32
        pooling_nchw_sum: 2x3x7x8xf32, 3x2xf32 -> 2x3x3x7xf32
        pooling_nhwc_max: 2x7x8x3xf32, 3x2xf32 -> 2x3x7x3xf32
        pooling_nhwc_min: 2x7x8x3xf32, 3x2xf32 -> 2x3x7x3xf32
        pooling_nhwc_sum: 2x7x8x3xf32, 3x2xf32 -> 2x3x7x3xf32
        pooling_nhwc_max_unsigned: 2x7x8x3xi8, 3x2xi8 -> 2x3x7x3xi8
        pooling_nhwc_min_unsigned: 2x7x8x3xi8, 3x2xi8 -> 2x3x7x3xi8
        """,
        PLANE,
    ),
    *_of(
        """
        conv_3d_ncdhw_fcdhw: 2x3x4x7x5xf32, 4x3x2x3x2xf32 -> 2x4x2x3x3xf32
        conv_3d_ndhwc_dhwcf: 2x4x7x5x3xf32, 2x3x2x3x4xf32 -> 2x2x3x3x4xf32
        conv_3d_ndhwc_dhwcf_q: 2x4x7x5x3xi8, 2x3x2x3x4xi8, i32, i32 -> 2x2x3x3x4xi32
        depthwise_conv_3d_ncdhw_cdhw: 2x3x4x7x5xf32, 3x2x3x2xf32 -> 2x3x2x3x3xf32
        depthwise_conv_3d_ndhwc_dhwc: 2x4x7x5x3xf32, 2x3x2x3xf32 -> 2x2x3x3x3xf32
        depthwise_conv_3d_ndhwc_dhwcm: 2x4x7x5x3xf32, 2x3x2x3x2xf32 -> 2x2x3x3x3x2xf32
        pooling_ndhwc_max: 2x4x7x5x3xf32, 2x3x2xf32 -> 2x2x3x3x3xf32
        pooling_ndhwc_min: 2x4x7x5x3xf32, 2x3x2xf32 -> 2x2x3x3x3xf32
        pooling_ndhwc_sum: 2x4x7x5x3xf32, 2x3x2xf32 -> 2x2x3x3x3xf32
        """,
        SPACE,
    ),
)
