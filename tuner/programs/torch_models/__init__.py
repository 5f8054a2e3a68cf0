"""PyTorch modules as programs: exported by torch-mlir, called with tensors. Only this package imports torch."""
