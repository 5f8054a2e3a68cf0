"""A problem as MLIR text, as random arrays, and its expected result in float64."""

# What other packages may import; the rest is inside.
__all__ = [
    "comparison",
    "cpu",
    "drawing",
    "group_offsets",
    "inputs",
    "packed_weights",
    "partitions",
    "reference",
    "scaled_product",
    "special_numbers",
]
