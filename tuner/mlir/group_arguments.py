"""The arguments of a group's function, read from its text: shapes, strides, weights, outputs."""

from dataclasses import dataclass

from tuner.core.grouped_program import WEIGHT_ATTRIBUTE
from tuner.mlir.bindings import ir
from tuner.mlir.group_form import STORE, group_function, parse_group
from tuner.mlir.rewrite.padded_views import argument_attributes
from tuner.mlir.rewrite.walking import walk


@dataclass(frozen=True)
class GroupArgument:
    """An argument of a group's function: a strided array that it reads or writes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements, one for each dimension; the code gets a pointer to the first element
    element: str  # MLIR type
    is_weight: bool  # the same numbers at each call
    is_output: bool

    @property
    def span(self) -> int:
        """Returns the number of elements from the first to the last one, with those between rows."""
        steps = zip(self.shape, self.strides, strict=True)
        return 1 + sum((extent - 1) * stride for extent, stride in steps)


def group_arguments(text: str) -> tuple[GroupArgument, ...]:
    """Returns the arguments of a group: its inputs, then its outputs.

    Raises CandidateError(BIND) for text that is not a group.
    """
    with ir.Context(), ir.Location.unknown():
        module = parse_group(text)
        function = group_function(module)
        kinds = [ir.MemRefType(each.type) for each in function.regions[0].blocks[0].arguments]
        inputs = len(kinds) - len(walk(function, STORE))
        return tuple(
            GroupArgument(
                tuple(kind.shape),
                tuple(kind.get_strides_and_offset()[0]),
                str(kind.element_type),
                WEIGHT_ATTRIBUTE in argument_attributes(function, number),
                number >= inputs,
            )
            for number, kind in enumerate(kinds)
        )
