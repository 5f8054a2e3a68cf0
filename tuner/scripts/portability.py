"""What a script needs that stock ``mlir-opt`` does not have."""

import re

OWN_DIALECT = "tuner."  # prefix of this project's transform ops


def own_ops(script: str) -> tuple[str, ...]:
    """Returns the project's own ops that a script calls in generic syntax; comments do not count."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    return tuple(sorted(set(re.findall(rf'"({re.escape(OWN_DIALECT)}[\w.]+)"\s*\(', code))))
