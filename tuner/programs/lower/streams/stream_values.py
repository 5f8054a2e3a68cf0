"""Finds the values that are GPUX streams selected by control flow, and changes their type to pointers.

Control flow may select streams by ``arith.select``, and by results and block arguments of scf. Rejected:
streams of any other operation. The runtime takes streams as pointers.
"""

from collections.abc import Iterator

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.buffer_accesses import inside
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.lower.streams.gpux_ops import CREATE, is_stream
from tuner.programs.lower.streams.stream_calls import POINTER

CHOOSING = frozenset(
    {"arith.select", "scf.if", "scf.for", "scf.while", "scf.index_switch", "scf.execute_region"}
)


def selected_streams(function: Op) -> list[Value]:
    """Returns the GPUX streams that arith.select or scf defines: results and block arguments.

    Raises CandidateError(COMPILE) for a stream that another operation than these and create_stream defines.
    """
    found = []
    for op in inside(function):
        for value in filter(is_stream, _defined(op)):
            if op.name == CREATE:
                continue
            if op.name not in CHOOSING:
                raise unsupported(op, "a stream that it gives", f"streams of {CREATE}, arith.select and scf")
            found.append(value)
    return found


def make_pointers(streams: list[Value]) -> None:
    """Changes the type of GPUX streams to ``!llvm.ptr``, in place.

    The values that they come from must be pointers already, or in ``streams``.
    """
    for stream in streams:
        stream.set_type(ir.Type.parse(POINTER))


def _defined(op: Op) -> Iterator[Value]:
    """Yields the results of an operation and the arguments of its blocks."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments
