"""Elementary functions as arithmetic on scalars and vectors, for every target."""

# What other packages may import; the rest is inside.
__all__ = ["expressions", "lowering"]
