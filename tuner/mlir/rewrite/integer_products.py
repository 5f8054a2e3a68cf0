"""How matmuls extend the integers that they multiply."""

from tuner.mlir.bindings import Op

CAST, UNSIGNED = "cast", "cast_unsigned"  # attribute of a matmul, and the name in its value


def is_unsigned(op: Op) -> bool:
    """Returns whether a matmul or batch_matmul extends integers with zeros, not with their signs."""
    return CAST in op.attributes and UNSIGNED in str(op.attributes[CAST])
