"""Lowers a script's GPU kernels to PTX: passes that change a module in place, and what they need to know."""

# What other packages may import; the rest is inside.
__all__ = ["device_functions", "kernel_memory", "launch_sequence", "lowering", "modules", "tensor_maps"]
