"""Lowers a script's GPU kernels to PTX: passes that change a module in place, and what they need to know."""

# What other packages may import; the rest is inside.
__all__ = ["kernel_memory", "lowering", "modules", "tensor_maps"]
