"""A program of static sizes as a list of fusions of operations that run one after the other.

A fusion is a contraction with its elementwise consumers, rows (reductions and elementwise operations over the
same rows), an attention (rows between two contractions), a convolution, a matmul by quantized weights,
elementwise operations (transposes, paddings and copies are, too), or loops. Each is a function of memrefs, of
one kind; a transform script schedules all but loops:

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tuner.core.dtypes import number_type

HASH_DIGITS = 12  # of a text's SHA-256 in the key of a problem
FUSION_ENTRY = "fusion"  # name of a fusion's function, in its text and in its code
# Of an argument of a payload's function: the number of the result that is its new value. That result is not
# returned, but written into the argument's memory.
NEW_VALUE = "tuner.new_value"
WEIGHT_ATTRIBUTE = "tuner.weight"  # of an argument of a fusion's function: the same numbers at each call
SOURCE = "node "  # begins the location of an operation that comes from a node of a graph; its name follows
ROOT_ATTRIBUTE = "root"  # of the last operation of a fusion, whose tiles the schedule fuses the others into
CONTRACTION_ATTRIBUTE = "contraction"  # of a contraction or a convolution of a fusion
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


@lru_cache(maxsize=256)
def text_hash(text: str) -> str:
    """Returns the first HASH_DIGITS hex digits of the SHA-256 of a text.

    They name a fusion in keys of problems.
    """
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


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
    number: int  # its index among the buffers of its owner
    type: TensorType
    padding: float | None = None  # of a temporary: its elements before the first call, written by no fusion


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a contiguous array of a shape."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@dataclass(frozen=True)
class View:
    """The position of a value in a buffer of the program: an offset, and strides for each dimension."""

    buffer: int  # index into ``FusedProgram.buffers``
    offset: int  # elements of the buffer
    type: TensorType
    strides: tuple[int, ...]  # elements, one for each dimension

    @property
    def is_contiguous(self) -> bool:
        """Returns whether the elements lie row by row without gaps."""
        shape = self.type.shape
        sides = zip(shape, self.strides, row_major(shape), strict=True)
        return all(size == 1 or stride == expected for size, stride, expected in sides)


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
    results: tuple[TensorType, ...]  # without the new values of arguments
    # A module whose function ``init`` computes the weights of WEIGHT buffers from those of the payload;
    # "": they are the same.
    init: str = ""
    changed: tuple[int, ...] = ()  # indices of the arguments that the fusions change, ascending
