"""Which dimensions of a memref lie in memory without gaps."""

from tuner.mlir.bindings import Type, ir


def contiguous_dimensions(memref: Type) -> int:
    """Returns how many of the last dimensions of a ranked memref have their elements adjacent."""
    strides, _ = memref.get_strides_and_offset()
    adjacent: int | None = 1  # the stride that leaves no gap; None behind a size that is not known
    for number in reversed(range(memref.rank)):
        is_dynamic = memref.is_dynamic_dim(number)
        if not is_dynamic and memref.shape[number] == 1:
            continue
        if strides[number] != adjacent:
            return int(memref.rank - 1 - number)
        adjacent = None if is_dynamic else adjacent * memref.shape[number]
    return int(memref.rank)


def is_contiguous(memref: Type) -> bool:
    """Tells whether a memref type is ranked, and its elements are known to be adjacent and in order."""
    return isinstance(memref, ir.MemRefType) and contiguous_dimensions(memref) == memref.rank


def begins_at_its_pointer(memref: Type) -> bool:
    """Tells whether the first element is known to be where the memref's pointer points."""
    return bool(memref.get_strides_and_offset()[1] == 0)
