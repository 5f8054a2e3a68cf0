"""How much of a model's arithmetic is tuner's: operations of its products, convolutions and attention."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from tuner.models.torch import dynamo_backend
from tuner.models.torch.bound_graph import BoundGraph

# operators whose operations the profiler counts, and those that multiply, too
COUNTED = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"})
NOT_COUNTED = (
    "aten::convolution",
    "aten::_scaled_dot_product",
    "aten::_grouped_mm",
    "aten::lstm",
    "aten::gru",
)
# packages of operators of products of groups, which the flop counter of PyTorch does not know
GROUPED = (("aten", "_grouped_mm"), ("transformers", "grouped_mm_fallback"))
Shape = Sequence[int]


class CountedArithmetic:
    """The back end of tuner that counts floating-point operations of the graphs that it is given."""

    def __init__(self) -> None:
        self._total = 0
        self._in_torch = 0  # of graphs that are left, and of operators that PyTorch runs in those taken
        self._is_known = True

    @property
    def share(self) -> float | None:
        """Returns the share of the operations that tuner's programs compute; None if it is not known."""
        if not self._total or not self._is_known:
            return None
        return round(1 - self._in_torch / self._total, 4)

    def backend(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compiles a graph as the back end "tuner" does."""
        compiled = dynamo_backend.backend(graph, inputs)
        with torch.no_grad(), _flop_counter() as counter:
            graph.forward(*_copied(inputs))
        self._total += counter.get_total_flops()
        if isinstance(compiled, BoundGraph):
            self._add(compiled, inputs)
        else:
            self._in_torch += counter.get_total_flops()
        return compiled

    def _add(self, compiled: BoundGraph, inputs: Sequence[Any]) -> None:
        """Adds the operations of a compiled graph that run by PyTorch."""
        with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], with_flops=True) as profiled:
            compiled(*_copied(inputs))
        for event in profiled.key_averages():
            if event.key in COUNTED:
                self._in_torch += event.flops
            elif event.key.startswith(NOT_COUNTED):
                self._is_known = False


def _flop_counter() -> FlopCounterMode:
    known: dict[Any, Any] = {}
    for package, name in GROUPED:
        operator = getattr(getattr(torch.ops, package), name, None)  # None: the package is not imported
        if operator is not None:
            known[operator] = _operations_of_groups
    return FlopCounterMode(display=False, custom_mapping=known)


def _operations_of_groups(rows: Shape, matrices: Shape, *_: object, **__: object) -> int:
    """Returns the operations of a product of rows, (all, k), and a matrix per group, (groups, k, n)."""
    return 2 * rows[0] * matrices[1] * matrices[2]


def _copied(inputs: Sequence[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
