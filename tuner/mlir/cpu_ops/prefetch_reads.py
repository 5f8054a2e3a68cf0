"""The transform op ``tuner.prefetch_reads``."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import fetch, plus
from tuner.mlir.ir.reading import source_of, walk
from tuner.mlir.ir.vnni import packing_of

VIEWS = ("memref.subview", "memref.cast")
LOCALITY = 3  # keep in every cache level; 2: from the second level on


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
    ``locality`` (3: into every cache level, the default; 2: from the second level on). With the unit
    attribute ``packed``, instead of one argument, all that ``tuner.pack_weights`` packed. The handle (a
    func.func) stays valid. Silenceable failure: an op that is no func.func with a body, or without such an
    argument.
    """

    def change(self, function: Op) -> str | None:
        is_packed = "packed" in self.operation.attributes
        number = 0 if is_packed else attribute(self, "argument", 1)
        argument = _argument(function, number)
        if argument is None:
            return f"target: found {function.name}, allowed func.func with argument {number}"
        arguments = [argument]
        if is_packed:
            numbered = enumerate(function.regions[0].blocks[0].arguments)
            arguments = [each for at, each in numbered if packing_of(function, at) is not None]
        ahead = (attribute(self, "rows", 0), attribute(self, "columns", 0))
        for read in walk(function, "vector.transfer_read"):
            rank = ir.MemRefType(read.operands[0].type).rank
            if rank < 2 or read.parent.name != "scf.for":
                continue
            if source_of(read.operands[0], VIEWS) in arguments:
                line = attribute(self, "line", 16)
                locality = attribute(self, "locality", LOCALITY)
                width = ir.VectorType(read.results[0].type).shape[-1]
                buffer, *lead, row, column = list(read.operands)[: rank + 1]
                with ir.InsertionPoint(read), read.location:
                    later_row = plus(row, ahead[0])
                    for offset in dict.fromkeys((*range(0, width, line), width - 1)):
                        fetch(buffer, *lead, later_row, plus(column, ahead[1] + offset), locality=locality)
        return None


def _argument(function: Op, number: int) -> Value | None:
    is_function = function.name == "func.func" and len(function.regions[0].blocks) > 0
    arguments = function.regions[0].blocks[0].arguments if is_function else []
    return arguments[number] if number < len(arguments) else None
