"""Targets: how code for each kind of machine is compiled, verified and timed."""

# What other packages may import; the rest is inside.
__all__ = [
    "arrays",
    "backends",
    "compiled_target",
    "cpu",
    "range_kernel",
    "registry",
    "replay",
    "signature",
    "target",
]
