"""The error of an op that cannot be compiled, with its source location."""

import re

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op

POSITION = re.compile(r'"[^"]*":(\d+:\d+)')  # line and column, as MLIR prints a location


def unsupported(op: Op, found: str, allowed: str) -> CandidateError:
    """Returns, for the caller to raise, the error for an op that cannot be compiled: CandidateError(COMPILE).

    Its message has the op's name and location, what was ``found`` and what is ``allowed``.
    """
    return CandidateError(Stage.COMPILE, f"{op.name} {location_of(op)}: found {found}, allowed {allowed}")


def location_of(op: Op) -> str:
    """Returns "at line L:C" of an op, or of its closest parent with a location, else "at an unknown line"."""
    each = op
    while each is not None:
        found = POSITION.search(str(each.location))
        if found is not None:
            return f"at line {found[1]}"
        each = each.parent
    return "at an unknown line"
