"""``tuner.convolution_tiles``: the code of a tile of a convolution, and what is refused."""

from tests.texts import filled

LINE = '"tuner.convolution_tiles"(%func) : (!transform.any_op) -> ()'
FILL = "linalg.fill ins(%zero : f32) outs(%sums : {sums})"


def payload(filters: int = 16, pixels: int = 14, start: str = FILL, of: str = "i32", stride: int = 1) -> str:
    """Returns f(input, weights, sums): one tile of a 3x3 convolution of 24 K groups of channels."""
    x = f"memref<1x24x3x{(pixels - 1) * stride + 3}x{of}>"
    w, sums = f"memref<3x3x{filters}x24x{of}>", f"memref<1x{filters}x1x{pixels}xf32>"
    column = f"p * {stride} + b" if stride > 1 else "p + b"
    start = start.format(sums=sums)
    return filled(__file__, "TILE", x=x, w=w, sums=sums, filled_sums=start, column=column, element=of)


DYNAMIC = payload().replace("1x24x3", "?x24x3").replace("1x16x1", "?x16x1")
BECOMES = {
    "convolution_tiles": (LINE, payload()),
    "convolution_tiles_added": (LINE, payload(start="")),  # to what the buffer has
    "convolution_tiles_cut": (LINE, payload(20, 18)),  # 16 and 4 filters, 16 and 2 pixels
}
REFUSED = [
    (LINE, payload(48, 32), "found 6 sums, which need 10 tile registers, allowed 8"),
    (LINE, payload(of="bf16"), "of other operands, allowed K groups of channels and adjacent pixels"),
    (LINE, payload(stride=2), "of other operands, allowed K groups of channels and adjacent pixels"),
    (LINE, DYNAMIC, "allowed memrefs of static sizes"),
]
