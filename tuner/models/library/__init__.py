"""Uses of tuned schedules: libraries for other programs, bundles for another machine, ``tuner.matmul``."""

# What other packages may import; the rest is inside.
__all__ = ["dispatch"]
