"""Transform ops for processors: packing and register kernels."""
