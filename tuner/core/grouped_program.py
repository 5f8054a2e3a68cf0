"""A program of static sizes as a list of groups of operations that run one after the other.

A group is a contraction with its elementwise consumers, rows (reductions and elementwise operations over the
same rows), an attention (rows between two contractions), a convolution, an elementwise operation, a
transpose. Each is a function of memrefs, of one kind, which a transform script schedules:

    func.func @group(%0: memref<128x512xf32>, %1: memref<512x1024xf32> {tuner.weight}, %2: memref<1024xf32>,
                     %3: memref<128x1024xf32>) {
      %a = bufferization.to_tensor %0 restrict : memref<128x512xf32> to tensor<128x512xf32>
      ...
      %r = linalg.generic {...} ins(%product, %bias : ...) outs(%c : ...) attrs = {root} {...}
      bufferization.materialize_in_destination %r in restrict writable %3 : (...) -> ()
      return
    }
"""

from dataclasses import dataclass
from math import prod

from tuner.core.element_types import number_type

CONTRACTION, CONVOLUTION, ATTENTION, ROWS, ELEMENTWISE, LOOPS = KINDS = (
    "contraction",  # matmul or batch_matmul, or two of one A, with the elementwise consumers
    "convolution",  # with the elementwise consumers
    "attention",  # a contraction, rows of its result, a contraction whose A they are, elementwise consumers
    "rows",  # reductions over the last dimension, and elementwise operations over the same rows
    "elementwise",  # one or more elementwise operations of one shape; transposes, paddings, copies
    "loops",  # what no schedule is for: scalar loops
)
ARGUMENT, WEIGHT, RESULT, TEMPORARY = OWNERS = ("argument", "weight", "result", "temporary")
GROUP_ENTRY = "group"  # name of a group's function
WEIGHT_ATTRIBUTE = "tuner.weight"  # of an argument of a group's function: the same numbers at each call
PACKINGS_COMMENT = "// packings: "
UNSIGNED_SUFFIX = "u"  # of the sizes of a packing of unsigned bytes: 64x4x64u
RUN_MARK = "/"  # before the rows of a run: 32x2x2/3
ROOT_ATTRIBUTE = "root"  # of the last operation of a group, whose tiles the schedule fuses the others into
CONTRACTION_ATTRIBUTE = "contraction"  # of a contraction or a convolution of a group


@dataclass(frozen=True)
class TensorType:
    """Shape and MLIR element type of a tensor: ``TensorType((128, 512), "f32")``."""

    shape: tuple[int, ...]
    element: str

    @property
    def bytes(self) -> int:
        """Returns the bytes of a dense tensor of this type."""
        return prod(self.shape) * number_type(self.element).bytes


@dataclass(frozen=True)
class Buffer:
    """Contiguous memory of a program that groups read and write.

    ``number`` counts the buffers of one owner: the second argument, the third weight.
    """

    owner: str  # one of OWNERS
    number: int
    type: TensorType
    padding: float | None = None  # of a temporary: its elements before the first call, written by no group


@dataclass(frozen=True)
class View:
    """How a value lies in a buffer of the program: strided elements from an offset on."""

    buffer: int  # index into ``GroupedProgram.buffers``
    offset: int  # elements of the buffer
    type: TensorType
    strides: tuple[int, ...]  # elements, one for each dimension


@dataclass(frozen=True)
class OpGroup:
    """Operations that become one function: its text, what it reads and what it writes."""

    kind: str  # one of KINDS
    text: str  # a module with the function ``group``; arguments are the inputs, then the outputs
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    ops: tuple[str, ...]  # names of the payload's operations, in order: ("linalg.matmul", "arith.addf")
    reason: str = ""  # of a group of kind LOOPS: why no schedule is for it


@dataclass(frozen=True)
class GroupedProgram:
    """A program as groups in the order in which they run."""

    groups: tuple[OpGroup, ...]
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
    element, by which the sign bit is flipped, as dot products of bytes take one of their factors.

    With ``run`` 3, rows come in runs of 3, each of which is padded to a multiple of ``depth``: the channels
    of a convolution for each element of its window. k must be a multiple of it.

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

    def matrix_shape(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Returns k and n of a weight of this shape."""
        *rows, columns = [shape[each] for each in self.order or range(len(shape))]
        return prod(rows), columns

    def padded_rows(self, rows: int) -> int:
        """Returns the rows of a panel of a weight that has ``rows`` rows."""
        run = self.run or rows
        return rows // run * (-(-run // self.depth) * self.depth) if run else 0


@dataclass(frozen=True)
class GroupCode:
    """A group, compiled: LLVM dialect, and how it takes its weights."""

    llvm_text: str  # its function takes bare pointers: one for each input, then one for each output
    packings: tuple[WeightPacking | None, ...]  # one for each input; None: as it lies in the view
    # its function takes two integers more, a thread's number and the number of threads, and computes that
    # thread's share
    is_divided: bool = False
    asserts: bool = False  # its function returns the address of the text of an assertion that failed, or 0


def packings_comment(packings: tuple[WeightPacking | None, ...]) -> str:
    """Returns the comment line in front of a group's code that says how its inputs are packed: - 48x1 -."""
    return PACKINGS_COMMENT + " ".join(map(_packing_text, packings)) + "\n"


def packings_in(code: str) -> tuple[WeightPacking | None, ...]:
    """Returns the packings that the first line of a group's code lists; () without such a line."""
    line = code.partition("\n")[0]
    if not line.startswith(PACKINGS_COMMENT):
        return ()
    return tuple(_packing(text) for text in line.removeprefix(PACKINGS_COMMENT).split())


def _packing_text(packing: WeightPacking | None) -> str:
    if packing is None:
        return "-"
    order = "".join(f":{dimension}" for dimension in packing.order)
    depth = f"x{packing.depth}" if packing.depth > 1 else ""
    unsigned = UNSIGNED_SUFFIX * packing.unsigned
    run = f"{RUN_MARK}{packing.run}" if packing.run else ""
    return f"{packing.columns}x{packing.interleave}{depth}{unsigned}{run}{order}"


def _packing(text: str) -> WeightPacking | None:
    if text == "-":
        return None
    sizes, *order = text.split(":")
    sizes, _, run = sizes.partition(RUN_MARK)
    columns, interleave, *depth = (int(number) for number in sizes.removesuffix(UNSIGNED_SUFFIX).split("x"))
    return WeightPacking(
        columns,
        interleave,
        tuple(int(each) for each in order),
        depth=depth[0] if depth else 1,
        unsigned=sizes.endswith(UNSIGNED_SUFFIX),
        run=int(run) if run else 0,
    )
