"""Predicted facts of kernels on a GPU: bytes, occupancy, banks of shared memory."""

# What other packages may import; the rest is inside.
__all__ = ["untimed"]
