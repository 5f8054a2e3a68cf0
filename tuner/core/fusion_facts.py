"""Facts about a fusion, which schedules and constraints need, and the MLIR attributes that hold them.

``tuner.mlir.fusions`` writes them as attributes of the function when it makes a fusion's canonical text, and
returns them as FusionFacts, which constraints of the search space and templates use without MLIR:

  func.func @fusion(...) attributes {tuner.bytes = 790528 : i64, tuner.contractions = 1 : i64,
                                    tuner.copy = 0 : i64, tuner.loops = array<i64: 128, 1024>,
                                    tuner.transposed = 0 : i64, tuner.weights = 1 : i64}

Rows that are reduced over another loop than the last loop of the root (the fusion's last operation) also have
the loops of the reductions, ``tuner.rows = array<i64: 16, 64, 256>``, and which one is reduced over:
``tuner.reduced = 1 : i64``.

A fusion that is a matmul of two activations, with an epilogue of the table, has the layout of its
operands, ``tuner.layout = "nt"``: the scripts of matmuls fit it.

A fusion whose operands have other elements in between along the last loop has ``tuner.strided = 1 : i64``.
A convolution also has ``tuner.dimensions = "nfHW"``, what the loops of its last operation go through, and
``tuner.channels = 64 : i64``, over which it sums; its step along a row is that of the convolution itself.
A convolution of volumes with planes of zeros at the ends, ``ZERO_PLANES``, has
``tuner.products = 7225344 : i64``: so many products it sums up, without those of zeros.
"""

from dataclasses import dataclass

from tuner.core.quantization import CONSTANT, WeightFormat

CHANNELS = "tuner.channels"
DIMENSIONS = "tuner.dimensions"
LAYOUT = "tuner.layout"
PRODUCTS = "tuner.products"
REDUCED = "tuner.reduced"
ROWS_ATTRIBUTE = "tuner.rows"
STRIDED = "tuner.strided"
BYTES, CONTRACTIONS, COPY, LOOPS_ATTRIBUTE, TRANSPOSED, WEIGHTS = ATTRIBUTES = (
    *("tuner.bytes", "tuner.contractions", "tuner.copy"),
    *("tuner.loops", "tuner.transposed", "tuner.weights"),
)
# VISIBLE, an array<i64: first, last>, marks the mask of an attention: row i sees at least one key, and none
# but keys i + first to i + last. GUARDED marks its queries, keys and values: hidden keys add 0 to the result
# as long as no number in these arguments is NaN or above MOST_GUARDED in magnitude.
VISIBLE = "tuner.visible"
GUARDED = "tuner.guarded"
MOST_GUARDED = 1e10
# Of the input of a convolution of volumes, array<i64: first, last>: so many planes at its start and at its
# end are zeros at each call, as padding is.
ZERO_PLANES = "tuner.zero_planes"
# Fields of FusionFacts that constraints and templates use by their names.
VARIABLES = (
    *("contractions", "weights", "transposed", "copy", "strided"),
    *("dimensions", "channels", "stride"),
)


@dataclass(frozen=True)
class FusionFacts:
    """Facts about a fusion that its schedules depend on: extents of loops, contractions, layout, types."""

    loops: tuple[int, ...] = ()  # extents of the iteration space of the last operation, the root
    contractions: int = 0  # matrix products: 0, 1, or 2: of one A, or of an attention
    weights: int = 0  # contractions whose B is a weight
    # 1 + the loop along which elements of an operand are adjacent, if it is not the last loop; else 0
    transposed: int = 0
    copy: int = 0  # 1 where nothing is computed, elements are only copied; else 0
    bytes: int = 0  # of all arguments
    # Of a convolution: a letter for each loop: n images, g groups, f filters (c channels of a depthwise one),
    # D H W planes, rows and columns of pixels.
    dimensions: str = ""
    channels: int = 0  # of a convolution: that are summed up; 1 of a depthwise one
    products: int = 0  # of a convolution with planes of zeros: that are summed up, without theirs; else 0
    stride: int = 0  # of a convolution: pixels of the input from one pixel of a row of the output to the next
    strided: int = 0  # 1 where elements of an operand are not adjacent along its last dimension; else 0
    reduced: int = 0  # of ``rows``: the loop that is reduced over
    # Extents of the loops of reductions; () where these are the root's and the last one is reduced over.
    rows: tuple[int, ...] = ()
    visible: tuple[int, int] | None = None  # of an attention with a mask: ``VISIBLE``
    elements: tuple[str, ...] = ()  # MLIR element types of all tensors, sorted
    epilogue: str = ""  # of a matmul of two arguments: the row of the table that follows it; "": none of them
    output: str = ""  # MLIR element type of the result
    layout: str = ""  # of a fusion that scripts of matmuls fit, as ``Problem.layout``; "": they do not
    weights_format: str = ""  # of a quantized matmul: the text of its WeightFormat; CONSTANT: B as it is

    def visible_scores(self, queries: int, keys: int) -> int:
        """Returns how many of ``queries`` x ``keys`` scores of an attention the mask leaves visible.

        All if unknown.
        """
        if self.visible is None:
            return queries * keys
        first, last = self.visible
        return sum(min(keys, row + last + 1) - max(0, row + first) for row in range(queries))

    def variables(self) -> tuple[tuple[str, int | str], ...]:
        """Returns the (name, value) pairs of the facts that constraints and templates may use."""
        inner_rows, inner_columns = (1, 1, *self.loops)[-2:]
        return (
            ("loops", len(self.loops)),
            ("inner_rows", inner_rows),
            ("inner_columns", inner_columns),
            *((name, getattr(self, name)) for name in VARIABLES),
            ("masked", int(self.visible is not None)),
            *self._of_quantization(),
        )

    def _of_quantization(self) -> tuple[tuple[str, int | str], ...]:
        if self.weights_format in ("", CONSTANT):
            return (("weight_bits", 0), ("group_size", 0), ("zero_points", 0), ("integers", 0))
        format_ = WeightFormat.of_text(self.weights_format)
        return (
            ("weight_bits", format_.bits),
            ("group_size", format_.group),
            ("zero_points", int(format_.has_zero_points)),
            ("integers", int(bool(format_.activations))),
        )
