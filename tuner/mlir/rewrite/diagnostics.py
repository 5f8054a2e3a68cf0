"""Diagnostics of the transform interpreter in one line, with the name of the op that they point to."""

import re

from tuner.mlir.bindings import Op, WalkResult, ir
from tuner.mlir.rewrite.walking import walk_ops

LENGTH_LIMIT = 500  # characters of a reason
PAYLOAD = "payload"  # file name in the locations of payload ops; locations of the script stay UNNAMED
UNNAMED = "-"  # file name that MLIR gives to parsed text
# Lines that MLIR adds to the message of an op defined in Python.
ADDED = re.compile(r'TransformOpInterfaceFallbackModel: silenceable failure|see current operation: "tuner\.')
LOCATION = re.compile(r'loc\("([^"]*)":(\d+):(\d+)\)')


class OpLocations:
    """The names of a payload's ops by source location, with which error messages name ops.

    Creating this object sets the file name in the payload's locations to "payload", in place: MLIR calls the
    texts of script and payload both "-".
    """

    def __init__(self, payload: ir.Module) -> None:
        """Sets the file name of payload locations from "-" to "payload"; locations of a script keep "-"."""
        self._names: dict[tuple[str, int, int], str] = {}

        def visit(op: Op) -> WalkResult:
            at = op.location
            if isinstance(at, ir.FileLineColLoc) and at.filename == UNNAMED:
                op.location = ir.Location.file(PAYLOAD, at.start_line, at.start_col)
                self._names[PAYLOAD, at.start_line, at.start_col] = op.name
            return WalkResult.ADVANCE

        walk_ops(payload, visit)

    def diagnostic(self, error: Exception, script: ir.Module) -> str:
        """Returns an error of the transform interpreter as one line that names the ops and their places.

        For example ``transform.loop.unroll at script:6:2: failed to unroll``. Has the first two lines of
        MLIR's message, at most 500 characters.
        """
        names = dict(self._names)

        def visit(op: Op) -> WalkResult:
            at = op.location
            if isinstance(at, ir.FileLineColLoc):
                names[at.filename, at.start_line, at.start_col] = op.name
            return WalkResult.ADVANCE

        walk_ops(script, visit)

        def named(match: re.Match[str]) -> str:
            file, line, column = match[1], int(match[2]), int(match[3])
            place = f"{'script' if file == UNNAMED else file}:{line}:{column}"
            return f"{names.get((file, line, column), 'an op')} at {place}"

        text = str(error).removeprefix("Failed to apply named transform sequence.").strip()
        lines = [line.strip() for line in text.splitlines() if line.strip() and not ADDED.search(line)]
        said = [
            LOCATION.sub(named, line.removeprefix("Diagnostic message at ").removeprefix("at "))
            for line in lines
        ]
        return "; ".join(said[:2])[:LENGTH_LIMIT] or type(error).__name__
