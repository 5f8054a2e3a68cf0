"""Indices of blocks and threads: ``gpu.block_id``, ``gpu.thread_id`` and similar ops, along x, y or z."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value

AXES = "xyz"


def index_along(name: str, axis: str) -> Value:
    """Creates the op ``name``, such as ``gpu.block_id``, along "x", "y" or "z"; returns its index value."""
    return value(name, ir.IndexType.get(), dimension=ir.Attribute.parse(f"#gpu<dim {axis}>"))


def axis_of(op: Op) -> int:
    """Returns the axis of an op such as ``gpu.block_id``: 0, 1 or 2 for x, y or z."""
    return AXES.index(str(op.attributes["dimension"]).removeprefix("#gpu<dim ").removesuffix(">"))
