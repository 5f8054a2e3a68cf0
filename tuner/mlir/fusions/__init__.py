"""Fusions in MLIR: their functions and facts, their convolutions, and keys that a mask hides."""

# What other packages may import; the rest is inside.
__all__ = ["convolutions", "facts", "function", "hidden_keys", "operations"]
