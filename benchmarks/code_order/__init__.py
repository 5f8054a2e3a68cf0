"""How well a model of machine code ranks kernels whose times are known."""
