"""Transform ops of a script that stock ``mlir-opt`` does not have."""

import re

CUSTOM_DIALECT = "tuner."  # prefix of tuner's transform ops


def custom_ops(script: str) -> tuple[str, ...]:
    """Returns the names of tuner's transform ops that a script calls, sorted; () for a portable script.

    Only ops in generic syntax count, not those in lines that begin with ``//``.
    """
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    return tuple(sorted(set(re.findall(rf'"({re.escape(CUSTOM_DIALECT)}[\w.]+)"\s*\(', code))))
