"""Other machines: a fleet that measures, and bundles that a machine without a network takes."""

# What other packages may import; the rest is inside.
__all__ = ["bundle"]
