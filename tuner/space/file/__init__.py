"""The search-space file: reading, validation, and search spaces for a problem."""

# What other packages may import; the rest is inside.
__all__ = ["entries", "reading", "seeds", "shipped", "yaml"]
