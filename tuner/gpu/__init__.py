"""NVIDIA GPUs: kernels, target, driver, programs on a device, and a simulator of PTX."""

# What other packages may import; the rest is inside.
__all__ = ["cost_model", "driver", "payload", "run", "target"]
