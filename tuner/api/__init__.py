"""The functions of the Python API that use the results database; ``tuner`` shows them."""

# What other packages may import; the rest is inside.
__all__ = ["results", "tuning"]
