"""PyTorch modules of many kinds, exported by torch-mlir: each program gives what torch gives."""
