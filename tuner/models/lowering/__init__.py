"""Lowering of a whole function: read, outlined into kernels, lowered for a device or for the host."""
