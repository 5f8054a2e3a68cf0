"""A race of whole tuners: the same matmuls, wall time and core for each, kernels timed by one C function.

``peers`` has a module for each tuner or library; ``__main__`` is the command.
"""
