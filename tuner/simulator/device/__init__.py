"""A GPU simulated in host memory: streams that run lazily and adversarially, PTX, races by vector clocks."""

# What other packages may import; the rest is inside.
__all__ = ["kernels", "memory"]
