"""Rejects scripts that run passes with effects outside of the payload: writing files, starting programs.

Upstream registers such passes together with all others: ``transform.apply_registered_pass`` runs them by
name. Passes that take a pipeline as an option can run them too, so every string of a script is checked.
"""

import re

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import ir

# https://mlir.llvm.org/docs/Passes/: passes whose options name files, programs (ptxas, lld) or plugins; and
# passes that print
EFFECTS = re.compile(
    r"(?<![\w-])(?:location-snapshot|snapshot-op-locations|gpu-module-to-binary|gpu-lower-to-[\w-]+-pipeline"
    r"|(?:nvvm|rocdl|xevm)-attach-target|sparsifier|transform-(?:preload-library|interpreter)"
    r"|(?:view-op-graph|print-[\w-]+|load-(?:pass|dialect)-plugin))(?![\w-])"
)
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
ESCAPED = re.compile(r"\\([0-9A-Fa-f]{2})")


def require_no_effects(script: ir.Module) -> None:
    """Raises CandidateError(BIND) for a script with a pass that writes files, starts programs or prints.

    Checks every string of the script, since options of passes may contain pipelines.
    """
    printed = script.operation.get_asm(assume_verified=True)
    for text in TEXT.findall(printed):
        found = EFFECTS.search(ESCAPED.sub(lambda match: chr(int(match[1], 16)), text))
        if found is not None:
            raise CandidateError(
                Stage.BIND,
                f"script: found pass {found[0]}, which writes files, starts programs or prints; "
                "allowed with tuner apply --allow-effects",
            )
