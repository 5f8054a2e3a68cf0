"""Lowering of host functions with kernels to code that allocates, copies and launches."""
