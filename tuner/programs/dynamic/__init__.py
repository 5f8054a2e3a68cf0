"""Programs of one dynamic size n: a family of static programs, and the proof that their padding is right."""

# What other packages may import; the rest is inside.
__all__ = ["tuned_sizes"]
