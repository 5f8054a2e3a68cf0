"""The interpreter's complaints in one line, with the op of script or payload that they point at."""

import re

from tuner.mlir.bindings import ir

LENGTH_LIMIT = 500  # characters of a reason
PAYLOAD = "payload"  # file name in the locations of payload ops; those of the script stay UNNAMED
UNNAMED = "-"  # file name that MLIR gives to parsed text
LOCATION = re.compile(r'loc\("([^"]*)":(\d+):(\d+)\)')


class OpNames:
    """Tells ops of payload and script apart: both come from unnamed text, and complaints give only places."""

    def __init__(self, payload: ir.Module) -> None:
        """Renames the file in the payload's locations; the ops stay what they are."""
        self._names: dict[tuple[str, int, int], str] = {}

        def visit(op: ir.Operation) -> ir.WalkResult:
            at = op.location
            if isinstance(at, ir.FileLineColLoc) and at.filename == UNNAMED:
                op.location = ir.Location.file(PAYLOAD, at.start_line, at.start_col)
                self._names[PAYLOAD, at.start_line, at.start_col] = op.name
            return ir.WalkResult.ADVANCE

        payload.operation.walk(visit)

    def complaint(self, error: Exception, script: ir.Module) -> str:
        """Returns one line: ``transform.loop.unroll at script:6:2: failed to unroll, incorrect ...``."""
        names = dict(self._names)

        def visit(op: ir.Operation) -> ir.WalkResult:
            at = op.location
            if isinstance(at, ir.FileLineColLoc):
                names[at.filename, at.start_line, at.start_col] = op.name
            return ir.WalkResult.ADVANCE

        script.operation.walk(visit)

        def named(match: re.Match[str]) -> str:
            file, line, column = match[1], int(match[2]), int(match[3])
            place = f"{'script' if file == UNNAMED else file}:{line}:{column}"
            return f"{names.get((file, line, column), 'an op')} at {place}"

        text = str(error).removeprefix("Failed to apply named transform sequence.").strip()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = [
            LOCATION.sub(named, line.removeprefix("Diagnostic message at ").removeprefix("at "))
            for line in lines
        ]
        return "; ".join(said[:2])[:LENGTH_LIMIT] or type(error).__name__
