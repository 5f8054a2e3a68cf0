"""What a kernel itself addresses in the dynamic shared memory that its launches ask for.

An analysis of outlined kernels that changes nothing: ``memref.view`` of ``gpu.dynamic_shared_memory`` with a
constant shift and a static shape tells how many bytes the launch must ask for.

    %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
  needs 2048 bytes.
"""

from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op
from tuner.mlir.rewrite.definitions import constant_of
from tuner.mlir.rewrite.launch_operands import asked_shared_bytes
from tuner.mlir.rewrite.located_error import location_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.type_sizes import memref_bytes
from tuner.mlir.rewrite.walking import walk

DYNAMIC = "gpu.dynamic_shared_memory"
BLOCK_TYPE = "memref<?xi8, #gpu.address_space<workgroup>>"


@dataclass(frozen=True)
class CustomSharedViews:
    """The least bytes that a launch of one kernel must ask for."""

    kernel: str
    bytes: int  # to the end of the furthest view whose place is known; 0 without one
    furthest: str  # that view and its location, for messages; "" without one
    unbounded: str  # an access whose place only the run knows, and its location; "" without one


def custom_shared_views(function: Op) -> CustomSharedViews:
    """Reads a ``gpu.func``."""
    size, furthest, unbounded = 0, "", ""
    for block in walk(function, DYNAMIC):
        for use in block.results[0].uses:
            op = use.owner.operation
            end = _end_of(op)
            if end is None:
                unbounded = f"{op.name} {location_of(op)}"
            elif end > size:
                size, furthest = end, f"{op.name} {location_of(op)}"
    return CustomSharedViews(name_of(function), size, furthest, unbounded)


def reserved_bytes(launch: Op, views: CustomSharedViews) -> int | None:
    """Returns the bytes of a launch for the kernel's own views; None where only the run knows them.

    A launch that asks for nothing gets what the views need. Raises CandidateError: RESOURCES for one that
    asks for less, COMPILE for one that asks for nothing where the need is not known.
    """
    asked = asked_shared_bytes(launch)
    if asked is None:
        if views.unbounded:
            found = "found a place that is not constant and no dynamic_shared_memory_size"
            allowed = f"a launch of {views.kernel} that says the size"
            raise CandidateError(Stage.COMPILE, f"{views.unbounded}: {found}, allowed {allowed}")
        return views.bytes
    size = constant_of(asked)
    if size is not None and size < views.bytes:
        found = f"found dynamic_shared_memory_size {size}, allowed at least {views.bytes} bytes"
        raise CandidateError(
            Stage.RESOURCES,
            f"launch of {views.kernel} {location_of(launch)}: {found}, which {views.furthest} needs",
        )
    return size


def _end_of(op: Op) -> int | None:
    """Returns where the use of a block ends, in bytes; None where that is not constant, as of no elements."""
    if op.name != "memref.view" or not op.results[0].type.has_static_shape or 0 in op.results[0].type.shape:
        return None
    shift = constant_of(op.operands[1])
    return None if shift is None else shift + memref_bytes(op.results[0].type)
