"""Uses of tuned schedules: libraries for other programs, bundles for a GPU elsewhere, ``tuner.matmul``."""

# What other packages may import; the rest is inside.
__all__ = ["bundle", "dispatch"]
