"""How well machine code orders kernels whose times are known."""
