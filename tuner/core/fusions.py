"""A program of static sizes as a list of fusions of operations that run one after the other.

A fusion is a contraction with its elementwise consumers, rows (reductions and elementwise operations over the
same rows), an attention (rows between two contractions), a convolution, an elementwise operation, a
transpose, or loops. Each is a function of memrefs, of one kind; a transform script schedules all but loops:

    func.func @fusion(%0: memref<128x512xf32>, %1: memref<512x1024xf32> {tuner.weight}, %2: memref<1024xf32>,
                     %3: memref<128x1024xf32>) {
      %a = bufferization.to_tensor %0 restrict : memref<128x512xf32> to tensor<128x512xf32>
      ...
      %r = linalg.generic {...} ins(%product, %bias : ...) outs(%c : ...) attrs = {root} {...}
      bufferization.materialize_in_destination %r in restrict writable %3 : (...) -> ()
      return
    }
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import MappingProxyType

from tuner.core.dtypes import number_type
from tuner.core.quantization import CONSTANT, WeightFormat

# What schedules need to know of a fusion. ``tuner.mlir.fusions`` writes it as attributes of the function when
# it makes a fusion's canonical text, and returns it as FusionFacts, which constraints of the search space and
# templates use without MLIR:
#
#   func.func @fusion(...) attributes {tuner.bytes = 790528 : i64, tuner.contractions = 1 : i64,
#                                     tuner.copy = 0 : i64, tuner.loops = array<i64: 128, 1024>,
#                                     tuner.transposed = 0 : i64, tuner.weights = 1 : i64}
#
# Rows that are reduced over another loop than the root's last one also have the loops of the reductions,
# ``tuner.rows = array<i64: 16, 64, 256>``, and which one is reduced over, ``tuner.reduced = 1 : i64``.
#
# A fusion whose operands have other elements in between along the last loop has ``tuner.strided = 1 : i64``.
# A convolution also has ``tuner.dimensions = "nfHW"``, what the loops of its last operation go through, and
# ``tuner.channels = 64 : i64``, over which it sums; its step along a row is that of the convolution itself.
# One of volumes with planes of zeros at the ends, ``ZERO_PLANES``, has ``tuner.products = 7225344 : i64``: so
# many it sums up, without those of zeros.

CHANNELS = "tuner.channels"
DIMENSIONS = "tuner.dimensions"
PRODUCTS = "tuner.products"
REDUCED = "tuner.reduced"
ROWS_ATTRIBUTE = "tuner.rows"
STRIDED = "tuner.strided"
HASH_DIGITS = 12  # of a text's SHA-256 in the key of a problem
BYTES, CONTRACTIONS, COPY, LOOPS_ATTRIBUTE, TRANSPOSED, WEIGHTS = ATTRIBUTES = (
    *("tuner.bytes", "tuner.contractions", "tuner.copy"),
    *("tuner.loops", "tuner.transposed", "tuner.weights"),
)
FUSION_ENTRY = "fusion"  # name of a fusion's function, in its text and in its code
WEIGHT_ATTRIBUTE = "tuner.weight"  # of an argument of a fusion's function: the same numbers at each call
# VISIBLE, an array<i64: first, last>, marks the mask of an attention: row i sees at least one key, and none
# but keys i + first to i + last. GUARDED marks its queries, keys and values: hidden keys add 0 to the result
# as long as no number in these arguments is NaN or above MOST_GUARDED in magnitude.
VISIBLE = "tuner.visible"
GUARDED = "tuner.guarded"
MOST_GUARDED = 1e10
# Of the input of a convolution of volumes, array<i64: first, last>: so many planes at its start and at its
# end are zeros at each call, as padding is.
ZERO_PLANES = "tuner.zero_planes"
PACKINGS_COMMENT = "// packings: "
THREADS_COMMENT = "// threads: "
UNSIGNED_SUFFIX = "u"  # of the sizes of a packing of unsigned bytes: 64x4x64u
RUN_MARK = "/"  # before the rows of a run: 32x2x2/3
NIBBLE_MARK = "="  # before the order of nibbles: 64x8=fours
SOURCE = "node "  # begins the location of an operation that comes from a node of a graph; its name follows
ROOT_ATTRIBUTE = "root"  # of the last operation of a fusion, whose tiles the schedule fuses the others into
CONTRACTION_ATTRIBUTE = "contraction"  # of a contraction or a convolution of a fusion
# Which of eight rows of K the nibbles of 32 bits are, from the lowest bits on. Fours: the low nibbles of four
# bytes are four adjacent rows, the high ones the next four. Pairs: shifted by 4 i, the low nibbles of both
# halves are rows 2 i and 2 i + 1. Rows: row by row.
NIBBLES = MappingProxyType(
    {"fours": (0, 4, 1, 5, 2, 6, 3, 7), "pairs": (0, 2, 4, 6, 1, 3, 5, 7), "rows": tuple(range(8))}
)
NIBBLE_ROWS = 8


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
        return (
            ("loops", len(self.loops)),
            ("inner_rows", self.loops[-2] if len(self.loops) > 1 else 1),
            ("inner_columns", self.loops[-1] if self.loops else 1),
            *(
                (name, getattr(self, name))
                for name in ("contractions", "weights", "transposed", "copy", "strided")
            ),
            *((name, getattr(self, name)) for name in ("dimensions", "channels", "stride")),
            ("masked", int(self.visible is not None)),
            *self._of_quantization(),
        )

    def _of_quantization(self) -> tuple[tuple[str, int | str], ...]:
        is_quantized = self.weights_format not in ("", CONSTANT)
        format_ = WeightFormat.of_text(self.weights_format) if is_quantized else None
        return (
            ("weight_bits", format_.bits if format_ else 0),
            ("group_size", format_.group if format_ else 0),
            ("zero_points", int(format_ is not None and format_.has_zero_points)),
            ("integers", int(format_ is not None and bool(format_.activations))),
        )


@lru_cache(maxsize=256)
def text_hash(text: str) -> str:
    """Returns the first HASH_DIGITS hex digits of the SHA-256 of a text.

    They name a fusion in keys of problems.
    """
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


CONTRACTION, CONVOLUTION, ATTENTION, QUANTIZED, ROWS, ELEMENTWISE, LOOPS = KINDS = (
    "contraction",  # matmul or batch_matmul, or two of one A, with the elementwise consumers
    "convolution",  # with the elementwise consumers
    "attention",  # a contraction, rows of its result, a contraction whose A they are, elementwise consumers
    "quantized_matmul",  # by weights that are integers with scales: tuner.core.quantization
    "rows",  # reductions over one dimension, and elementwise operations over the same rows
    "elementwise",  # one or more elementwise operations of one shape; transposes, paddings, copies
    "loops",  # what no schedule is for: scalar loops
)
ARGUMENT, WEIGHT, RESULT, TEMPORARY = OWNERS = ("argument", "weight", "result", "temporary")


@dataclass(frozen=True)
class TensorType:
    """Shape and MLIR element type of a tensor: ``TensorType((128, 512), "f32")``."""

    shape: tuple[int, ...]
    element: str

    @property
    def bytes(self) -> int:
        return prod(self.shape) * number_type(self.element).bytes


@dataclass(frozen=True)
class Buffer:
    """Contiguous memory that fusions of a program read and write: an argument, a temporary, a weight, ..."""

    owner: str  # one of OWNERS
    number: int
    type: TensorType
    padding: float | None = None  # of a temporary: its elements before the first call, written by no fusion


@dataclass(frozen=True)
class View:
    """The position of a value in a buffer of the program: an offset, and strides for each dimension."""

    buffer: int  # index into ``FusedProgram.buffers``
    offset: int  # elements of the buffer
    type: TensorType
    strides: tuple[int, ...]  # elements, one for each dimension


@dataclass(frozen=True)
class Fusion:
    """Operations that become one function: its text, what it reads and what it writes."""

    kind: str  # one of KINDS
    text: str  # a module with the function ``fusion``; arguments are the inputs, then the outputs
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    ops: tuple[str, ...]  # names of the payload's operations, in order: ("linalg.matmul", "arith.addf")
    reason: str = ""  # of a fusion of kind LOOPS: why no schedule is for it
    sources: tuple[str, ...] = ()  # nodes of a graph that its operations come from, by their locations


@dataclass(frozen=True)
class FusedProgram:
    """A program as fusions in the order in which they run."""

    fusions: tuple[Fusion, ...]
    buffers: tuple[Buffer, ...]
    arguments: tuple[TensorType, ...]  # of the program, without weights
    results: tuple[TensorType, ...]
    # A module whose function ``init`` computes the weights of WEIGHT buffers from those of the payload;
    # "": they are the same.
    init: str = ""


@dataclass(frozen=True)
class WeightPacking:
    """How a script reads a weight of k x n elements: as panels of ``columns`` columns, one after the other.

    A panel has k x columns elements, row by row; the last one is padded with zeros. With ``interleave`` 2,
    two rows of k lie next to each other for each column, as the dot products of bf16 take them. With
    ``depth`` 32, k is padded with zeros to a multiple of 32. With ``unsigned``, of i8, 128 is added to each
    element, which flips its sign bit: dot products of bytes take one of their factors as unsigned.

    With ``nibbles``, integers from -8 to 7 with 8 added, two in a byte: the interleaved rows of a column in
    the order of ``NIBBLES[nibbles]``, the first in the lowest bits.

    With ``run`` 3, rows come in runs of 3, each of which is padded to a multiple of ``depth``: the channels
    of a convolution for each element of its window. k must be a multiple of ``run``.

    A weight of other than two dimensions, or a transposed one, is a matrix by ``order``: its dimensions in
    the order in which rows go through all but the last, and columns through the last. ``(2, 3, 1, 0)`` of
    filters x channels x height x width: a row for each element of the window and channel, a column for each
    filter.
    """

    columns: int
    interleave: int = 1
    order: tuple[int, ...] = ()  # (): rows and columns of a matrix as they are
    depth: int = 1
    unsigned: bool = False
    run: int = 0  # 0: all of k
    nibbles: str = ""  # one of NIBBLES; "": a whole element each

    def matrix_shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        *rows, columns = [shape[dimension] for dimension in self.order or range(len(shape))]
        return prod(rows), columns

    def padded_rows(self, rows: int) -> int:
        run = self.run or rows
        if run:
            return rows // run * (-(-run // self.depth) * self.depth)
        return 0


@dataclass(frozen=True)
class FusionCode:
    """A fusion, compiled: LLVM dialect, and for each input how it must be packed before calls, if at all."""

    llvm_text: str  # its function takes bare pointers: one for each input, then one for each output
    packings: tuple[WeightPacking | None, ...]  # one for each input; None: as it lies in the view
    # its function takes two integers more, a thread's number and the number of threads, and computes that
    # thread's share
    is_divided: bool = False
    asserts: bool = False  # its function returns the address of the text of an assertion that failed, or 0


def packings_comment(packings: tuple[WeightPacking | None, ...]) -> str:
    """Returns a comment line for a fusion's code, of its inputs' packings: ``// packings: - 48x1 -``."""
    return PACKINGS_COMMENT + " ".join(map(_packing_text, packings)) + "\n"


def packings_in(code: str) -> tuple[WeightPacking | None, ...]:
    """Returns the packings that the first line of a fusion's code lists; () without such a line."""
    line = code.partition("\n")[0]
    if not line.startswith(PACKINGS_COMMENT):
        return ()
    return tuple(map(_packing, line.removeprefix(PACKINGS_COMMENT).split()))


def threads_comment(threads: int) -> str:
    """Returns a comment line for a fusion's script or code that is divided among threads; "" for one."""
    if threads > 1:
        return f"{THREADS_COMMENT}{threads}\n"
    return ""


def threads_in(text: str) -> int:
    """Returns the number of threads that a line of a fusion's script or code names; 1 without such a line."""
    lines = (line for line in text.split("\n") if line.startswith(THREADS_COMMENT))
    numbers = [line.removeprefix(THREADS_COMMENT) for line in lines]
    return next((int(number) for number in numbers if number.isdecimal()), 1)


def _packing_text(packing: WeightPacking | None) -> str:
    if packing is None:
        return "-"
    order = "".join(f":{dimension}" for dimension in packing.order)
    depth = f"x{packing.depth}" if packing.depth > 1 else ""
    unsigned = UNSIGNED_SUFFIX * packing.unsigned
    run = f"{RUN_MARK}{packing.run}" if packing.run else ""
    nibbles = f"{NIBBLE_MARK}{packing.nibbles}" if packing.nibbles else ""
    return f"{packing.columns}x{packing.interleave}{depth}{unsigned}{run}{nibbles}{order}"


def _packing(text: str) -> WeightPacking | None:
    if text == "-":
        return None
    sizes, *order = text.split(":")
    sizes, _, nibbles = sizes.partition(NIBBLE_MARK)
    sizes, _, run = sizes.partition(RUN_MARK)
    columns, interleave, *depth = map(int, sizes.removesuffix(UNSIGNED_SUFFIX).split("x"))
    return WeightPacking(
        columns,
        interleave,
        tuple(map(int, order)),
        depth=depth[0] if depth else 1,
        unsigned=sizes.endswith(UNSIGNED_SUFFIX),
        run=int(run) if run else 0,
        nibbles=nibbles,
    )
