"""Groups as kernels of one thread per element: elementwise operations, contractions, convolutions.

A thread computes one element of the group's result, with all that leads to it (``point_values.py``): sums
are in a register, what an epilogue reads is loaded where it is needed. Not handled: a reduction whose result
several elements need, which each of them would compute.
"""

from collections.abc import Sequence

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Value
from tuner.mlir.rewrite.parallel_loops import store
from tuner.programs.device_groups.group_function import GroupFunction
from tuner.programs.device_groups.launching import launch_for_each
from tuner.programs.device_groups.point_values import PointValues
from tuner.programs.op_groups.op_names import GENERIC, is_parallel, loop_sizes

Output = tuple[Value, Value]  # a tensor, and the memref that it is written to


def launch_elements(function: GroupFunction) -> None:
    """Creates the launches of a group at the current insertion point: one for all outputs of one shape.

    Raises CandidateError(COMPILE) for a group that is not computed element by element.
    """
    _require_no_shared_sums(function)
    shapes = dict.fromkeys(tuple(memory.type.shape) for _, memory in function.outputs)
    for shape in shapes:
        same = [each for each in function.outputs if tuple(each[1].type.shape) == shape]
        _launch(function, shape, same)


def _launch(function: GroupFunction, shape: Sequence[int], outputs: Sequence[Output]) -> None:
    def element(indices: list[Value]) -> None:
        points = PointValues(function.memory)
        found = [points.at(tensor, indices) for tensor, _ in outputs]
        for each, (_, memory) in zip(found, outputs, strict=True):
            store(each, memory, indices)

    launch_for_each(shape, element)


def _require_no_shared_sums(function: GroupFunction) -> None:
    """Raises CandidateError(COMPILE) for a sum that is read at other places than those of its elements."""
    for op in function.generics:
        if op.results[0] not in function.memory and not all(is_parallel(op)):
            elements = _elements(op)
            for use in op.results[0].uses:
                user = use.owner.operation
                if user.name == GENERIC and _iterations(user) > elements:
                    raise CandidateError(Stage.COMPILE, "several elements need the same sum")


def _elements(op: Value) -> int:
    sizes = loop_sizes(op)
    count = 1
    for size, parallel in zip(sizes, is_parallel(op), strict=True):
        count *= size if parallel else 1
    return count


def _iterations(op: Value) -> int:
    count = 1
    for size in loop_sizes(op):
        count *= size
    return count
