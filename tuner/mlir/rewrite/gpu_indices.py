"""Where a thread is: ``gpu.block_id``, ``gpu.thread_id`` and their like, along x, y or z."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value

AXES = "xyz"


def index_along(name: str, axis: str) -> Value:
    """Creates an index along an axis, such as ``gpu.block_id`` along "z"."""
    return value(name, ir.IndexType.get(), dimension=ir.Attribute.parse(f"#gpu<dim {axis}>"))


def axis_of(op: Op) -> int:
    """Returns the axis that such an op is along: 0, 1 or 2."""
    return AXES.index(str(op.attributes["dimension"]).removeprefix("#gpu<dim ").removesuffix(">"))
