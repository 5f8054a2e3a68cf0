"""Analytical models: what the hardware can hold, and the cycles that a schedule would take."""

# What other packages may import; the rest is inside.
__all__ = ["configurations", "gpu", "occupancy", "untimed"]
