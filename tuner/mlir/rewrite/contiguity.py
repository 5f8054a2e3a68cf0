"""Which dimensions of a memref are contiguous in memory."""

from tuner.mlir.bindings import Type, ir


def contiguous_dimensions(memref: Type) -> int:
    """Returns how many trailing dimensions of a ranked memref type are known to lie in memory without gaps.

    From 0 to the rank. Dimensions of size 1 have no gap, whatever their stride. Of dimensions outside of one
    of dynamic size nothing is known: 1 for ``memref<?x?xf32>``.
    """
    strides, _ = memref.get_strides_and_offset()
    adjacent: int | None = 1  # the stride without a gap; None after a dynamic size
    for number in reversed(range(memref.rank)):
        is_dynamic = memref.is_dynamic_dim(number)
        if not is_dynamic and memref.shape[number] == 1:
            continue
        if strides[number] != adjacent:
            return int(memref.rank - 1 - number)
        adjacent = None if is_dynamic else adjacent * memref.shape[number]
    return int(memref.rank)


def is_contiguous(memref: Type) -> bool:
    """Returns whether a memref type is ranked and known to be contiguous, in row-major order."""
    return isinstance(memref, ir.MemRefType) and contiguous_dimensions(memref) == memref.rank


def has_zero_offset(memref: Type) -> bool:
    """Returns whether a memref type has offset 0: the aligned pointer then points to the first element."""
    return bool(memref.get_strides_and_offset()[1] == 0)
