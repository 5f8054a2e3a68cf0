"""Everything that touches the MLIR bindings."""
