"""The CUDA driver, a device on top of it, NVML and cuBLAS; imports need neither a driver nor a GPU."""

# What other packages may import; the rest is inside.
__all__ = ["driver", "probe"]
