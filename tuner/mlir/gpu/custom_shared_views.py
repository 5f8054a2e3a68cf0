"""Views of dynamic shared memory that a kernel creates itself, and the bytes that they need.

An analysis of outlined kernels that changes nothing: each ``memref.view`` of ``gpu.dynamic_shared_memory``
with a constant shift and a static shape gives a lower limit of the bytes that the launch must request.

    %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
  needs 2048 bytes.
"""

from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op
from tuner.mlir.rewrite.definitions import constant_of
from tuner.mlir.rewrite.launch_operands import shared_bytes_operand
from tuner.mlir.rewrite.located_error import location_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.type_sizes import memref_bytes
from tuner.mlir.rewrite.walking import walk

DYNAMIC = "gpu.dynamic_shared_memory"
BLOCK_TYPE = "memref<?xi8, #gpu.address_space<workgroup>>"


@dataclass(frozen=True)
class CustomSharedViews:
    """The dynamic shared memory that the views in the body of one kernel need at least.

    A launch of the kernel must request ``bytes``. ``unbounded`` names a use of the memory whose end is not
    known: a view at a position that is not constant, of dynamic shape or of no elements, or an op other than
    ``memref.view``.
    """

    kernel: str
    bytes: int  # to the end of the last view with a constant position; 0 without such a view
    furthest: str  # op name and source location of that view, for messages; "" without such a view
    unbounded: str  # op name and source location of an access at a dynamic position; "" without one


def custom_shared_views(function: Op) -> CustomSharedViews:
    """Returns the dynamic shared memory that the views in a ``gpu.func`` need; changes nothing."""
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
    """Returns the bytes of dynamic shared memory that a launch requests; None if known only at run time.

    ``launch`` is a ``gpu.launch_func`` of the kernel that ``views`` describes. Without a request, the result
    is what the views need. Raises CandidateError: RESOURCES for a request of less than that, COMPILE for a
    launch without a request if ``views.unbounded`` is not "": how much a use needs is then not known.
    """
    asked = shared_bytes_operand(launch)
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
    """Returns the end in bytes of a view of the block; None if not constant, or for a view of no elements."""
    if op.name != "memref.view" or not op.results[0].type.has_static_shape or 0 in op.results[0].type.shape:
        return None
    shift = constant_of(op.operands[1])
    return None if shift is None else shift + memref_bytes(op.results[0].type)
