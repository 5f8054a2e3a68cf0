"""The attribute of a ``gpu.module`` that is compiled already."""

from tuner.mlir.bindings import Op

OBJECTS = "tuner.objects"  # attribute of a gpu.module: the objects of its gpu.binary


def is_ready(holder: Op) -> bool:
    """Returns whether a ``gpu.module`` is compiled already: it has the code as an attribute."""
    return OBJECTS in holder.attributes
