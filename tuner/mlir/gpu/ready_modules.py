"""The mark of a ``gpu.module`` whose code is made already."""

from tuner.mlir.bindings import Op

OBJECTS = "tuner.objects"  # attribute: the objects of its gpu.binary


def is_ready(holder: Op) -> bool:
    """Returns whether a ``gpu.module`` has its code beside it."""
    return OBJECTS in holder.attributes
