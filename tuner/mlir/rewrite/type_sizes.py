"""Sizes and layouts of MLIR types in memory."""

import math

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Type, ir

POINTER_BYTES = 8  # also the size of an index


def is_workgroup(memref: Type) -> bool:
    """Returns whether a memref type is in shared memory: workgroup address space, or NVVM's number 3."""
    space = str(memref.memory_space)
    return "workgroup" in space or space.split(" ")[0] == "3"


def is_row_major(memref: Type) -> bool:
    """Returns whether a memref type has the identity layout: row-major, without gaps or offset."""
    plain = ir.MemRefType.get(memref.shape, memref.element_type, memory_space=memref.memory_space)
    return bool(plain == memref)


def element_bytes(element: Type) -> int:
    """Returns the bytes of one element of a number, index or vector type, rounded up to whole bytes.

    Raises CandidateError(COMPILE) for any other type.
    """
    if isinstance(element, ir.VectorType):
        return int(math.prod(element.shape)) * element_bytes(element.element_type)
    if isinstance(element, ir.IndexType):
        return POINTER_BYTES
    if isinstance(element, ir.IntegerType | ir.FloatType):
        return -(-int(element.width) // 8)
    raise CandidateError(Stage.COMPILE, f"element type: found {element}, allowed numbers and vectors of them")


def memref_bytes(memref: Type) -> int:
    """Returns the bytes from the start of a memref's first element to the end of its last, including gaps.

    0 for a memref without elements. Strides must be static. Raises CandidateError(COMPILE) for dynamic sizes
    and for elements that are neither numbers, indices nor vectors.
    """
    if not memref.has_static_shape:
        raise CandidateError(Stage.COMPILE, f"type: found {memref}, allowed a static shape")
    if 0 in memref.shape:
        return 0
    strides, _ = memref.get_strides_and_offset()
    last = sum((size - 1) * stride for size, stride in zip(memref.shape, strides, strict=True))
    return int(last + 1) * element_bytes(memref.element_type)
