"""Products of groups of rows that were set aside: which argument of a function is what of a group."""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value
from tuner.mlir.ir.memrefs import named_arguments

OF_GROUPS = "tuner.of_groups"  # attribute of an argument: one of the names below
ROWS_IN, MATRICES, OFFSETS, ROWS_OUT = PARTS = ("rows", "matrices", "offsets", "results")


@dataclass(frozen=True)
class RowGroups:
    """A, B, offsets and C: the arguments of a function that ``tuner.set_aside_groups`` marked."""

    rows: Value  # A, (m, k)
    matrices: Value  # B, the matrix of the first group
    offsets: Value  # (groups + 1,)
    results: Value  # C, (m, n)

    @property
    def count(self) -> int:
        """Returns the number of groups."""
        return int(self.offsets.type.shape[0]) - 1


def find_groups(function: Op) -> RowGroups | None:
    """Returns A, B, offsets and C, arguments that ``tuner.set_aside_groups`` marked; else None."""
    marked = named_arguments(function, OF_GROUPS)
    if not marked:
        return None
    return RowGroups(*map(marked.__getitem__, PARTS))
