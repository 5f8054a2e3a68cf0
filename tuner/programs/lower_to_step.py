"""Lowers a payload up to a named step, for people and tools that want to see the IR."""

from dataclasses import dataclass

from tuner.core.chips import chip_of
from tuner.programs.compiler import ProgramCompiler
from tuner.programs.lower.lowering_steps import LoweringStep
from tuner.programs.request import ProgramRequest
from tuner.tuning.composition import Composition


@dataclass(frozen=True)
class LoweredText:
    """The IR after a step."""

    entry: str
    chip: str
    text: str  # MLIR, or PTX


def lowered(request: ProgramRequest, step: LoweringStep, composition: Composition) -> LoweredText:
    """Lowers in this process, for a target with a device. Raises CandidateError, UsageError."""
    from tuner.mlir import bindings, interpreter
    from tuner.programs.lower.lower_to import text_after

    compiler = ProgramCompiler.of(request.target, composition)
    chip = chip_of(compiler.machine.chip)
    with interpreter.new_context(), bindings.ir.Location.unknown():
        payload = compiler.kernels(request.text, request.entry, {}).payload
        text = text_after(step, payload, chip, request.options.device)
        return LoweredText(payload.entry, chip.name, text)
