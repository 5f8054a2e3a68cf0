"""Functions that read, build and rewrite IR, shared by transform ops and passes."""

# What other packages may import; the rest is inside.
__all__ = [
    "building",
    "dot_products",
    "index_terms",
    "linalg",
    "memory_spaces",
    "memrefs",
    "packed_weights",
    "reading",
    "resources",
    "table_lookup",
]
