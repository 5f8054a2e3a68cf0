"""Puts a kernel's shared memory into one dynamic block, whose size the launch tells.

``memref.alloc`` in workgroup memory and workgroup attributions of a ``gpu.func`` become views of
``gpu.dynamic_shared_memory``; buffers that barriers separate in time share bytes. Run after outlining.
"""

from dataclasses import dataclass
from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.passes.launch_operands import launches_of, set_shared_bytes, shared_bytes
from tuner.mlir.passes.placement import Extent, align, place, total_bytes
from tuner.mlir.passes.shared_lifetimes import Kernel
from tuner.mlir.symbols import function_type, name_of
from tuner.mlir.types import is_row_major, is_workgroup, memref_bytes

# One row of all 32 banks: a tile starts at bank 0. Also enough for 16-byte copies and ldmatrix.
ALIGNMENT_BYTES = 128
BLOCK_TYPE = "memref<?xi8, #gpu.address_space<workgroup>>"


@dataclass(frozen=True)
class SharedBlock:
    """The dynamic shared memory of one kernel."""

    kernel: str
    bytes: int
    alignment_bytes: int


def use_dynamic_shared_memory(module: ir.Module, limit_bytes: int) -> tuple[SharedBlock, ...]:
    """Rewrites every kernel and its launches. Raises CandidateError(RESOURCES) above the limit of a block."""
    blocks = []
    for function in walk(module, "gpu.func"):
        block = _rewrite(module, function)
        if block.bytes > limit_bytes:
            found = f"found {block.bytes} bytes, allowed {limit_bytes}"
            raise CandidateError(Stage.RESOURCES, f"shared memory of {block.kernel}: {found}")
        blocks.append(block)
    return tuple(blocks)


def attributions_of(function: Any) -> list[Any]:
    """Returns the workgroup attributions of a ``gpu.func``."""
    arguments = list(function.regions[0].blocks[0].arguments)
    first = len(function_type(function).inputs)
    return arguments[first : first + _attribution_count(function)]


def _rewrite(module: ir.Module, function: Any) -> SharedBlock:
    name = name_of(function)
    launches = launches_of(module, name)
    reserved = max((shared_bytes(launch) for launch in launches), default=0)
    buffers = [*attributions_of(function), *_allocations(function)]
    if not buffers:
        return SharedBlock(name, reserved, ALIGNMENT_BYTES)
    extents = tuple(_extent(name, buffer) for buffer in buffers)
    kernel = Kernel(function)
    lifetimes = [kernel.lifetime(buffer) for buffer in buffers]
    start = align(reserved, ALIGNMENT_BYTES)
    offsets = place(extents, lambda one, other: lifetimes[one].overlaps(lifetimes[other]), start)
    _replace(function, buffers, offsets)
    _drop_attributions(function)
    total = total_bytes(extents, offsets)
    for launch in launches:
        set_shared_bytes(launch, total)
    return SharedBlock(name, total, max(extent.alignment_bytes for extent in extents))


def _allocations(function: Any) -> list[Any]:
    return [
        op.results[0]
        for op in walk(function, "memref.alloc")
        if is_workgroup(ir.MemRefType(op.results[0].type))
    ]


def _attribution_count(function: Any) -> int:
    name = "workgroup_attributions"
    return int(ir.IntegerAttr(function.attributes[name]).value) if name in function.attributes else 0


def _extent(kernel: str, buffer: Any) -> Extent:
    memref = ir.MemRefType(buffer.type)
    if not memref.has_static_shape or not is_row_major(memref):
        raise CandidateError(
            Stage.COMPILE,
            f"shared memory of {kernel}: found {memref}, allowed a static shape in row-major order",
        )
    asked = 0
    if isinstance(buffer, ir.OpResult) and "alignment" in buffer.owner.attributes:
        asked = ir.IntegerAttr(buffer.owner.attributes["alignment"]).value
    return Extent(memref_bytes(memref), max(ALIGNMENT_BYTES, asked))


def _replace(function: Any, buffers: list[Any], offsets: tuple[int, ...]) -> None:
    start = function.regions[0].blocks[0].operations[0]
    with function.location, ir.InsertionPoint(start):
        block = ir.Operation.create("gpu.dynamic_shared_memory", [ir.Type.parse(BLOCK_TYPE)]).results[0]
        for buffer, offset in zip(buffers, offsets, strict=True):
            index = ir.IntegerAttr.get(ir.IndexType.get(), offset)
            at = ir.Operation.create("arith.constant", [ir.IndexType.get()], attributes={"value": index})
            view = ir.Operation.create("memref.view", [buffer.type], [block, at.results[0]])
            _erase_deallocations(buffer)
            buffer.replace_all_uses_with(view.results[0])
            if isinstance(buffer, ir.OpResult):
                buffer.owner.erase()


def _erase_deallocations(buffer: Any) -> None:
    for use in list(buffer.uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()


def _drop_attributions(function: Any) -> None:
    block = function.regions[0].blocks[0]
    for argument in reversed(attributions_of(function)):
        block.erase_argument(argument.arg_number)
    for name in ("workgroup_attributions", "workgroup_attrib_attrs"):
        if name in function.attributes:
            del function.attributes[name]
