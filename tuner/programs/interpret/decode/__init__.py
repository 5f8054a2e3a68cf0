"""Decoders: convert MLIR operations to interpreter steps, one family of operations per file."""
