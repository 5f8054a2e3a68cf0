"""Composite operators of PyTorch: those that it computes by others (``CompositeImplicitAutograd``)."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._export import utils as export_utils
from torch.export import exported_program

from tuner.models.torch.graph_outputs import is_overload

# what ``run_decompositions`` calls; private to torch
OVERRIDE = "_override_composite_implicit_decomp"  # of ``exported_program``
FIND = "_materialize_cpp_cia_ops"  # of ``export_utils``


def composites(graph: torch.fx.Graph) -> dict[Any, Callable[..., Any]]:
    """Returns a table operator -> function for a graph's composite operators that are not of ``aten``.

    Such as ``torchao.dequantize_affine``, which torch.export keeps for other compilers.
    """
    targets = {node.target for node in graph.nodes if is_overload(node)}
    others = [target for target in targets if target.namespace != "aten" and target._can_decompose()]  # noqa: SLF001
    return dict(zip(others, map(export_utils._get_decomp_for_cia, others), strict=True))  # noqa: SLF001


@contextlib.contextmanager
def few_overrides() -> Iterator[None]:
    """Context manager: ``run_decompositions`` takes a third of its time, with equal results.

    At each call PyTorch 2.13 searches all composite operators 28 times and overrides the kernels of 525; 449
    of the overrides change nothing. Here it searches once and overrides the others. A version of PyTorch
    without these functions is not changed.
    """
    with (
        _replaced(export_utils, FIND, functools.cache),
        _replaced(exported_program, OVERRIDE, _of_other_kernels),
    ):
        yield


@contextlib.contextmanager
def _replaced(
    module: Any, name: str, changed: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """Context manager: replaces function ``name`` of a module by ``changed(function)``.

    Does nothing where the module has no such function.
    """
    function = getattr(module, name, None)
    if function is None:
        yield
        return
    setattr(module, name, changed(function))
    try:
        yield
    finally:
        setattr(module, name, function)


def _of_other_kernels(override: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls ``override`` with its table, without entries that change nothing.

    These are partial functions whose keyword ``kernel`` is the operator itself.
    """

    def overridden(table: Mapping[Any, Callable[..., Any]]) -> Any:
        return override({op: function for op, function in table.items() if not _is_kernel_of(op, function)})

    return overridden


def _is_kernel_of(op: Any, function: Callable[..., Any]) -> bool:
    return isinstance(function, functools.partial) and function.keywords.get("kernel") is op
