"""What a script needs that stock ``mlir-opt`` does not have."""

import re

CUSTOM_DIALECT = "tuner."  # prefix of this project's transform ops


def custom_ops(script: str) -> tuple[str, ...]:
    """Returns the project's own ops that a script calls in generic syntax; comments do not count."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    return tuple(sorted(set(re.findall(rf'"({re.escape(CUSTOM_DIALECT)}[\w.]+)"\s*\(', code))))
