"""A compiled program of groups, ready to load: its code, and its packed weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from tuner.programs.run.grouped_code import GroupedCode

if TYPE_CHECKING:
    from tuner.programs.run.packed_weights import WeightPlan

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class GroupedImage:
    """Code and packed weights; ``plan`` says how they are packed, None of a program that was loaded."""

    code: GroupedCode
    weights: Array  # bytes
    plan: "WeightPlan | None" = None

    def with_weights(self, weights: Sequence[Array]) -> Self:
        """Returns the program with other weights of the same types, in the order of the program's weights.

        Raises ValueError for a program that was loaded from files.
        """
        from tuner.programs.run.packed_weights import packed_block

        if self.plan is None:
            raise ValueError("a loaded program does not say how its weights are packed")
        return replace(self, weights=packed_block(self.plan, weights))
