"""PyTorch modules as programs: exported by torch-mlir, called with tensors. Imports torch."""
