"""Finds the matmuls of a program and replaces them by tuned kernels."""
