"""Creates the launches of one group of operations, in a function of memrefs that the program calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.core.errors import CandidateError
from tuner.core.grouped_program import CONTRACTION, OpGroup
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.interpreter import parse
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk
from tuner.programs.device_groups.element_kernels import launch_elements
from tuner.programs.device_groups.group_function import group_function
from tuner.programs.device_groups.matmul_kernels import launch_matmuls, matmuls_of
from tuner.programs.device_groups.row_kernels import has_rows, launch_rows
from tuner.programs.device_groups.script_kernels import KernelPlace
from tuner.programs.lower.indirect_indices import assert_indirect_indices

BUFFERIZE = "builtin.module(one-shot-bufferize,canonicalize,cse)"


@dataclass(frozen=True)
class GroupKernels:
    """The function that launches a group's kernels, and why the group is not one kernel."""

    function: Op  # private func.func of the views' types
    reason: str = ""  # "": it is


def add_group(group: OpGroup, types: Sequence[ir.Type], place: KernelPlace) -> GroupKernels:
    """Adds a private function to ``place.module`` that computes a group by launches of kernels.

    Args:
        group: the group.
        types: the memref types of its inputs, then of its outputs, offsets included.
        place: where the function and its kernels go; ``place.name`` is the function's name.

    A group that is not computed element by element or row by row becomes loops on memrefs, which become a
    kernel each, as in programs without groups.
    """
    try:
        return _function_of(place, types, lambda views: _launch(group, views, place))
    except CandidateError as error:
        _erase(place)
        first = error.reason
    try:
        found = _function_of(place, types, lambda views: _launch_elements(group, views))
        return GroupKernels(found.function, first)
    except CandidateError as error:
        _erase(place)
        return GroupKernels(_as_loops(group, types, place), f"{first}; {error.reason}")


def _launch(group: OpGroup, views: Sequence[Value], place: KernelPlace) -> str:
    """Creates the launches of a group; returns why it is several kernels."""
    named = group_function(group, views, is_generalized=False)
    if group.kind == CONTRACTION and matmuls_of(named):
        return launch_matmuls(named, place)
    function = group_function(group, views, is_generalized=True)
    if has_rows(function):
        launch_rows(function)
        return ""
    return _launch_elements(group, views)


def _launch_elements(group: OpGroup, views: Sequence[Value]) -> str:
    launch_elements(group_function(group, views, is_generalized=True))
    return ""


def _function_of(
    place: KernelPlace, types: Sequence[ir.Type], build: Callable[[Sequence[Value]], str]
) -> GroupKernels:
    with ir.InsertionPoint(place.module.body), ir.Location.unknown():
        kind = ir.FunctionType.get(list(types), [])
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(place.name),
                "function_type": ir.TypeAttr.get(kind),
                "sym_visibility": ir.StringAttr.get("private"),
            },
            regions=1,
        )
        block = function.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        with ir.InsertionPoint(block):
            reason = build(list(block.arguments))
            create("func.return")
    return GroupKernels(function, reason)


def _erase(place: KernelPlace) -> None:
    """Removes the function of a group that could not be completed."""
    for op in walk(place.module, "func.func"):
        if name_of(op) == place.name:
            op.erase()


def _as_loops(group: OpGroup, types: Sequence[ir.Type], place: KernelPlace) -> Op:
    """Adds a group's function with its operations on memrefs, of which loops are made later."""
    module = parse(group.text, "group")
    function = module.body.operations[0].operation
    assert_indirect_indices(function)
    for argument, kind in zip(function.regions[0].blocks[0].arguments, types, strict=True):
        argument.set_type(kind)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(list(types), []))
    function.attributes["sym_name"] = ir.StringAttr.get(place.name)
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    run_passes(module, BUFFERIZE)
    found = module.body.operations[0].operation
    with ir.InsertionPoint(place.module.body):
        return found.clone()
