"""Search spaces: knobs, constraints, and the feasible set of configurations."""

# What other packages may import; the rest is inside.
__all__ = [
    "enumeration",
    "expressions",
    "feasible_set",
    "file",
    "projection",
    "recorded",
    "scripts",
    "search_space",
]
