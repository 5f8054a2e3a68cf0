"""Applies a script to a payload in a child process: a compiler that aborts takes only that with it."""

from collections.abc import Callable

from tuner.mlir.op_place import OpPlace
from tuner.workers.protocol import Factory, ServiceSpec


class ApplyService:
    """Runs transform scripts, upstream's ops and this project's."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        pass

    def apply(self, script: str, payload: str, allows_effects: bool = False) -> str:
        """Returns the payload's text after the script. Raises CandidateError for what does not apply."""
        from tuner.mlir import bindings, interpreter

        with interpreter.new_context(), bindings.ir.Location.unknown():
            module = interpreter.parse(payload, "payload")
            bound = interpreter.parse(script, "script")
            interpreter.apply_script(module, bound, allows_effects=allows_effects)
            return str(module)

    def failing_op(self, script: str, payload: str) -> OpPlace | None:
        """Returns the op of the script that fails on the payload; None where none does."""
        from tuner.mlir.failing_op import failing_op

        return failing_op(script, payload)


def apply_spec() -> ServiceSpec:
    """Describes the child."""
    return ServiceSpec("apply", Factory("tuner.tuning.parts.apply:ApplyService"))
