"""Everything that uses the MLIR Python bindings: ops, analyses, lowerings and the JIT."""

# What other packages may import; the rest is inside.
__all__ = [
    "bindings",
    "cpu",
    "cpu_ops",
    "dialect",
    "effects",
    "fingerprint",
    "fusions",
    "ir",
    "math",
    "miscompiled",
    "passes",
    "programs",
    "reference",
    "script_linking",
    "transform",
]
