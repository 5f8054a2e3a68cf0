"""A user's whole function: read, split into kernels, lowered for a device or for the host."""
