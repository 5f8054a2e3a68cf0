"""Groups of operations of a program as kernels of a GPU."""
