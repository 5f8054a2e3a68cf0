"""Unsigned integers: MLIR's have no sign, so that an operation must be one whose bits need none.

Torch-mlir converts uint8 to wider types as it should, and forgets the sign where it promotes types itself.
So types are promoted here, before operations; what gives uint8 is taken if its bits are those of int8.
"""

from typing import Any

import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError

ATEN = torch.ops.aten
UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})
CONVERSIONS = (ATEN._to_copy.default, torch.ops.prims.convert_element_type.default)  # noqa: SLF001
SUMS = (ATEN.sum.default, ATEN.sum.dim_IntList)  # of int64
# by their names: each is right for all 256 numbers, which a test shows
BYTES = frozenset(
    {
        *("add", "sub", "mul", "neg", "amax", "amin", "maximum", "minimum", "clamp"),
        *("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "__lshift__", "__rshift__"),
        *("cat", "stack", "split", "split_with_sizes", "slice", "select", "index", "index_select", "gather"),
        *("alias", "clone", "detach", "expand", "flip", "permute", "repeat", "squeeze", "transpose"),
        *("unsqueeze", "view", "where", "full", "full_like", "empty_strided", "scalar_tensor"),
    }
)


def promote_unsigned(program: torch.export.ExportedProgram) -> None:
    """Converts uint8 to the types that PyTorch promotes it to, in place.

    Raises UsageError for other unsigned types, and for operations whose results would depend on a sign.
    """
    for node in list(program.graph.nodes):
        found = _types([node, *node.all_input_nodes]) & UNSIGNED
        if found - {torch.uint8}:
            raise UsageError(f"{_name(*found)} is not supported: of unsigned types, only uint8")
        if found and node.op == "call_function":
            _promote(program, node)


def _promote(program: torch.export.ExportedProgram, node: torch.fx.Node) -> None:
    target: Any = node.target
    given, taken = _types([node]), _types(node.all_input_nodes)
    if target in CONVERSIONS and torch.uint8 in given and any(each.is_floating_point for each in taken):
        _convert(program, node, torch.int32)  # wraps, where fptoui has no value
    elif not given or target in CONVERSIONS or (torch.uint8 in given and _base(target) in BYTES):
        return
    elif given == {torch.bool} and torch.Tag.pointwise in target.tags:
        _convert(program, node, torch.int64)
    elif torch.uint8 not in given and (torch.Tag.pointwise in target.tags or target in SUMS):
        _convert(program, node, *given)
    elif _base(target) != "getitem":
        raise UsageError(f"{target} of uint8 is not supported: convert to int32 before it")


def _convert(program: torch.export.ExportedProgram, node: torch.fx.Node, dtype: torch.dtype) -> None:
    """Lets a node read its inputs of uint8, or the floats that become uint8, as ``dtype``."""
    for each in node.all_input_nodes:
        value = each.meta["val"]
        if value.dtype is torch.uint8 or node.target in CONVERSIONS:
            with program.graph.inserting_before(node):
                wide = program.graph.call_function(CONVERSIONS[0], (each,), {"dtype": dtype})
            wide.meta = {"val": value.to(dtype)}
            node.replace_input_with(each, wide)


def _base(target: Any) -> str:
    """Returns the name of an operation without its overload: "add" of aten.add.Tensor."""
    return str(getattr(target, "__name__", target)).partition(".")[0]


def _types(nodes: list[torch.fx.Node]) -> set[torch.dtype]:
    values = _pytree.tree_leaves([each.meta.get("val") for each in nodes])
    return {each.dtype for each in values if isinstance(each, torch.Tensor)}


def _name(*types: torch.dtype) -> str:
    return ", ".join(sorted(str(each).removeprefix("torch.") for each in types))
