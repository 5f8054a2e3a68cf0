"""Everything that uses the MLIR Python bindings: ops, analyses, lowerings and the JIT."""
