"""Fusions of a program as kernels of a GPU."""
