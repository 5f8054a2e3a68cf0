"""What a fusion computes, in float64 by numpy, with a bound of the rounding errors."""

# What other packages may import; the rest is inside.
__all__ = ["fusion_reference"]
