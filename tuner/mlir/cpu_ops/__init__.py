"""Transform ops of ``tuner`` for CPUs: packing, and kernels in registers."""
