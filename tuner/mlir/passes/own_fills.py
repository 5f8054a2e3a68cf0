"""Gives each user of a filled tensor a fill of its own, before bufferization.

Two matmuls often start from one fill with zeros. As buffers the second would start from a copy of the first
one's, and nothing would show any more that it starts from zeros.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.ops.dialect import walk


def copy_shared_fills(function: Any) -> None:
    """Rewrites fills of ``tensor.empty`` of static shape in place; the last user keeps the old one."""
    for fill in walk(function, "linalg.fill"):
        if not fill.results or not _is_of_empty(fill):
            continue
        for use in list(fill.results[0].uses)[1:]:
            user, number = use.owner, use.operand_number
            with user.location, ir.InsertionPoint(user):
                empty = create("tensor.empty", [fill.results[0].type])
                copy = fill.clone()
                copy.operands[1] = empty.results[0]
            user.operands[number] = copy.results[0]


def _is_of_empty(fill: Any) -> bool:
    target = fill.operands[1]
    is_empty = not isinstance(target.owner, ir.Block) and target.owner.name == "tensor.empty"
    return is_empty and bool(ir.RankedTensorType(target.type).has_static_shape)
