"""Functions that read, build and rewrite IR, shared by transform ops and passes."""

# What other packages may import; the rest is inside.
__all__ = ["building", "linalg", "memory_spaces", "memrefs", "reading", "resources"]
