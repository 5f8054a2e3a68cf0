"""The transform op ``tuner.prefetch_reads``."""

import math

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import fetch, index, plus, times, total, value
from tuner.mlir.ir.packed_weights import packing_of
from tuner.mlir.ir.reading import constant_of, source_of, walk

READ, WRITE = "vector.transfer_read", "vector.transfer_write"
BUFFERS = {READ: 0, WRITE: 1}  # number of the operand
VIEWS = ("memref.subview", "memref.cast")
LOCALITY = 3  # keep in every cache level; 2: from the second level on
FRACTION_BITS = 16  # of a share of a panel
STRIPS = "ir"  # annotates the loop over strips of rows


class PrefetchReadsOp(InPlaceOp, name="prefetch_reads"):
    """``tuner.prefetch_reads``: software prefetching of the cache lines that later iterations read or write.

    Takes a function on buffers, tiled and vectorized; inserts a ``memref.prefetch`` per cache line, that of
    the vector's last element too, before each ``vector.transfer_read`` of one argument, or of a view of it,
    of two dimensions or more, directly in an ``scf.for``, a given number of rows and columns ahead; for a
    vector's first row only. Source: Mowry, Lam and Gupta, "Design and Evaluation of a Compiler Algorithm for
    Prefetching", 1992. Two of four prefetches are shown; those 32 and 39 elements on are alike.

        %x = vector.transfer_read %b[%i, %c4], %zero {in_bounds = [true]} : memref<32x64xf32>, vector<40xf32>
      becomes
        memref.prefetch %b[%i, %c4], read, locality<3>, data : memref<32x64xf32>
        %j16 = arith.addi %c4, %c16 : index
        memref.prefetch %b[%i, %j16], read, locality<3>, data : memref<32x64xf32>
        %x = vector.transfer_read %b[%i, %c4], %zero {in_bounds = [true]} : memref<32x64xf32>, vector<40xf32>

    Attributes, all i64: ``argument`` (its number, default 1), ``rows`` and ``columns`` (prefetch distance in
    elements along the last two dimensions, default 0), ``line`` (elements per cache line, default 16),
    ``locality`` (3: into every cache level, the default; 2: from the second level on), ``written`` (1: before
    each ``vector.transfer_write`` too, for a C that is not read; default 0), ``strips`` (default 0). With
    ``strips``, the number of strips of rows of A, the distances do not count: while a strip is
    multiplied by a panel of a weight that ``tuner.pack_weights`` packed, it fetches its share, one of
    ``strips``, of the panel that follows, an even portion in each iteration over K. Else only the first strip
    would read a panel from memory, and nothing would be read while the others multiply. Strips are the
    iterations of the loop annotated ``ir``, and the loops over K after it. The handle (a func.func) stays
    valid. Silenceable failure: an op that is not a func.func with a body, or without such an argument.
    """

    def change(self, function: Op) -> Refusal | None:
        number = attribute(self, "argument", 1)
        strips = attribute(self, "strips", 0)
        # with strips, weights are found by their packings, whatever their numbers
        argument = _argument(function, 0 if strips else number)
        if argument is None:
            return Refusal(f"target: found {function.name}, allowed func.func with argument {number}")
        line = attribute(self, "line", 16)
        if strips:
            _fetch_next_panels(function, strips, line)
            return None
        ahead = (attribute(self, "rows", 0), attribute(self, "columns", 0))
        locality = attribute(self, "locality", LOCALITY)
        accesses = _accesses_in_loops(function, READ, [argument])
        if attribute(self, "written", 0):
            accesses += _accesses_in_loops(function, WRITE, [argument])
        for access in accesses:
            width = ir.VectorType(_vector(access).type).shape[-1]
            buffer, *lead, row, column = _buffer_and_indices(access)
            with ir.InsertionPoint(access), access.location:
                later_row = plus(row, ahead[0])
                for offset in dict.fromkeys((*range(0, width, line), width - 1)):
                    fetch(buffer, *lead, later_row, plus(column, ahead[1] + offset), locality=locality)
        return None


def _argument(function: Op, number: int) -> Value | None:
    is_function = function.name == "func.func" and len(function.regions[0].blocks) > 0
    arguments = function.regions[0].blocks[0].arguments if is_function else []
    if number < len(arguments):
        return arguments[number]
    return None


def _accesses_in_loops(function: Op, kind: str, arguments: list[Value]) -> list[Op]:
    """Returns the reads or writes of arguments, of two dimensions or more, directly in a loop."""
    return [
        access
        for access in walk(function, kind)
        if ir.MemRefType(_buffer(access).type).rank >= 2
        and access.parent.name == "scf.for"
        and source_of(_buffer(access), VIEWS) in arguments
    ]


def _vector(access: Op) -> Value:
    return [*access.results, *access.operands][0]  # of a write the first operand


def _buffer(access: Op) -> Value:
    return access.operands[BUFFERS[access.name]]


def _buffer_and_indices(access: Op) -> list[Value]:
    """Returns the buffer that is read or written, and the indices of the first element."""
    start = BUFFERS[access.name]
    return list(access.operands)[start : start + ir.MemRefType(_buffer(access).type).rank + 1]


def _fetch_next_panels(function: Op, strips: int, line: int) -> None:
    """Creates prefetches of the panel after the one that is read, in each iteration of the loops over K."""
    reads_of_panels = list(_reads_of_panels(function).items())
    for (loop, weight), reads in reads_of_panels:
        first = reads[0]
        buffer, panel, row, _ = _buffer_and_indices(first)
        _, depth, columns = ir.MemRefType(buffer.type).shape
        elements = columns * len(reads)  # of the rows that an iteration reads, which lie one after the other
        with ir.InsertionPoint(first), first.location:
            strip_loop = _strip_loop(first)
            if strip_loop is None:  # the last strips, each a loop of its own
                alone = [
                    other
                    for (other, source), _ in reads_of_panels
                    if source == weight and _strip_loop(other) is None
                ]
                siblings = [other for other in alone if other.parent == loop.parent]
                strip = index(strips - len(siblings) + siblings.index(loop))
            else:
                start = strip_loop.regions[0].blocks[0].arguments[0]
                strip = value("arith.divui", ir.IndexType.get(), start, strip_loop.operands[2])
            # iterations of all strips share the panel's lines: several fetch one, or each fetches several,
            # at constant distances from one address.
            step = _quotient(total(times(strip, depth), row), len(reads))
            offset = _share(step, elements, strips)
            for further in range(0, -(-elements // strips), line):
                fetch(buffer, plus(panel, 1), index(0), plus(offset, further), locality=LOCALITY)


def _reads_of_panels(function: Op) -> dict[tuple[Op, Value], list[Op]]:
    """Returns the reads of packed weights in each loop over K, one per row of K, by loop and weight."""
    numbered = enumerate(function.regions[0].blocks[0].arguments)
    weights = [argument for number, argument in numbered if packing_of(function, number) is not None]
    reads: dict[tuple[Op, Value], list[Op]] = {}
    for read in _accesses_in_loops(function, READ, weights):
        indices = _buffer_and_indices(read)[1:]
        # panels x K x columns; of the parts of a row the first stands for all
        if len(indices) == 3 and constant_of(indices[-1]) == 0:
            reads.setdefault((read.parent, source_of(read.operands[0], VIEWS)), []).append(read)
    return reads


def _quotient(number: Value, divisor: int) -> Value:
    if divisor == 1:
        return number
    return value("arith.divui", ir.IndexType.get(), number, index(divisor))


def _share(step: Value, elements: int, strips: int) -> Value:
    """Creates ``step * elements / strips``, with a rounding of less than 2^-16 for each step.

    Divides only by a power of two: with a division by 7 in each iteration, and one more for each line, a
    contraction took three times as long (AVX-512, LLVM 22).
    """
    common = math.gcd(elements, strips)
    divisor = strips // common
    if divisor & (divisor - 1) == 0:
        return _quotient(times(step, elements // common), divisor)
    return _quotient(times(step, -(-(elements << FRACTION_BITS) // strips)), 1 << FRACTION_BITS)


def _strip_loop(op: Op) -> Op | None:
    """Returns the loop over strips of rows around a read, or around a loop over K; None if there is none."""
    around = op.parent
    while around.name != "func.func":
        if around.name == "scf.for" and STRIPS in around.attributes:
            return around
        around = around.parent
    return None
