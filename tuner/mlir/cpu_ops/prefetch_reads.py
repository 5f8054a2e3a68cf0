"""The transform op ``tuner.prefetch_reads``."""

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import fetch, index, plus, times, total, value
from tuner.mlir.ir.reading import constant_of, source_of, walk
from tuner.mlir.ir.vnni import packing_of

VIEWS = ("memref.subview", "memref.cast")
LOCALITY = 3  # keep in every cache level; 2: from the second level on
STRIPS = "ir"  # annotates the loop over strips of rows


class PrefetchReadsOp(InPlaceOp, name="prefetch_reads"):
    """``tuner.prefetch_reads``: software prefetching of the cache lines that later iterations read.

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
    ``locality`` (3: into every cache level, the default; 2: from the second level on). With ``strips``, for
    all arguments that ``tuner.pack_weights`` packed, instead of ``rows``: the panel that follows, of which
    each of so many strips of rows fetches its share, in the loop annotated ``ir`` or after it. Only the first
    strip reads a panel from memory: so memory is read while the others multiply, too. The handle (a
    func.func) stays valid. Silenceable failure: an op that is not a func.func with a body, or without such an
    argument.
    """

    def change(self, function: Op) -> Refusal | None:
        number = attribute(self, "argument", 1)
        strips = attribute(self, "strips", 0)
        argument = _argument(function, 0 if strips else number)
        if argument is None:
            return Refusal(f"target: found {function.name}, allowed func.func with argument {number}")
        line = attribute(self, "line", 16)
        if strips:
            _fetch_next_panels(function, strips, line)
            return None
        ahead = (attribute(self, "rows", 0), attribute(self, "columns", 0))
        locality = attribute(self, "locality", LOCALITY)
        for read in _reads_in_loops(function, [argument]):
            width = ir.VectorType(read.results[0].type).shape[-1]
            buffer, *lead, row, column = _place(read)
            with ir.InsertionPoint(read), read.location:
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


def _reads_in_loops(function: Op, arguments: list[Value]) -> list[Op]:
    """Returns the reads of arguments, of two dimensions or more, directly in a loop."""
    return [
        read
        for read in walk(function, "vector.transfer_read")
        if ir.MemRefType(read.operands[0].type).rank >= 2
        and read.parent.name == "scf.for"
        and source_of(read.operands[0], VIEWS) in arguments
    ]


def _place(read: Op) -> list[Value]:
    """Returns the buffer of a read and the indices of the first element."""
    return list(read.operands)[: ir.MemRefType(read.operands[0].type).rank + 1]


def _fetch_next_panels(function: Op, strips: int, line: int) -> None:
    """Creates prefetches of the panel after the one that is read, for each row of K that is."""
    numbered = enumerate(function.regions[0].blocks[0].arguments)
    weights = [argument for number, argument in numbered if packing_of(function, number) is not None]
    # panels x K x columns; of the parts of a row the first fetches for all
    found = [candidate for candidate in _reads_in_loops(function, weights) if len(_place(candidate)) == 4]
    reads = [candidate for candidate in found if constant_of(_place(candidate)[-1]) == 0]
    alone: dict[tuple[Op, Value], list[Op]] = {}  # loops over K that no loop over strips has around
    for read in reads:
        if _strip_loop(read) is None:
            loops = alone.setdefault((read.parent.parent, source_of(read.operands[0], VIEWS)), [])
            if read.parent not in loops:
                loops.append(read.parent)
    for read in reads:
        buffer, panel, row, _ = _place(read)
        _, depth, columns = ir.MemRefType(buffer.type).shape
        lines = -(-columns // line)
        with ir.InsertionPoint(read), read.location:
            around = _strip_loop(read)
            if around is None:  # they come last
                loops = alone[read.parent.parent, source_of(read.operands[0], VIEWS)]
                strip = index(strips - len(loops) + loops.index(read.parent))
            else:
                first = around.regions[0].blocks[0].arguments[0]
                strip = value("arith.divui", ir.IndexType.get(), first, around.operands[2])
            # a share of depth / strips rows: each is fetched in ``strips`` steps, some lines in each
            step = total(times(strip, depth), row)
            fetched = value("arith.divui", ir.IndexType.get(), step, index(strips))
            part = value("arith.remui", ir.IndexType.get(), step, index(strips))
            if strips > lines:
                part = value("arith.minui", ir.IndexType.get(), part, index(lines - 1))
            share = -(-lines // strips)
            for further in range(share):
                column = plus(times(part, share * line), further * line)
                fetch(buffer, plus(panel, 1), fetched, column, locality=LOCALITY)


def _strip_loop(read: Op) -> Op | None:
    """Returns the loop over strips of rows around a read."""
    around = read.parent
    while around.name != "func.func":
        if around.name == "scf.for" and STRIPS in around.attributes:
            return around
        around = around.parent
    return None
