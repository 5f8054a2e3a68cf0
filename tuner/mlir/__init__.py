"""Everything that uses the MLIR Python bindings: ops, analyses, lowerings and the JIT."""

# What other packages may import; the rest is inside.
__all__ = [
    "bindings",
    "cpu",
    "effects",
    "fingerprint",
    "fusions",
    "gpu",
    "ir",
    "miscompiled",
    "passes",
    "programs",
    "reference",
    "script_linking",
    "torch_dialect",
    "transform",
]
