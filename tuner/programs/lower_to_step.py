"""Lowers a payload up to a named step, for people and tools that want to see the IR."""

from dataclasses import dataclass

from tuner.core.chips import chip_of
from tuner.core.target_name import TargetName
from tuner.programs.compiler import ProgramCompiler
from tuner.programs.lower.device_options import DEFAULTS, DeviceOptions
from tuner.programs.lower.lowering_steps import LoweringStep


@dataclass(frozen=True)
class LowerRequest:
    """What is lowered, how far and for which chip."""

    text: str  # of the payload
    step: LoweringStep
    target: TargetName  # one with a device
    entry: str | None = None  # None: main, or the only public function
    options: DeviceOptions = DEFAULTS


@dataclass(frozen=True)
class LoweredText:
    """The IR after a step."""

    entry: str
    chip: str
    text: str  # MLIR, or PTX


def lowered(request: LowerRequest) -> LoweredText:
    """Lowers in this process. Raises CandidateError, UsageError."""
    from tuner.mlir import bindings, interpreter
    from tuner.programs.lower.lower_to import text_after

    compiler = ProgramCompiler.of(request.target)
    chip = chip_of(compiler.machine.chip)
    with interpreter.new_context(), bindings.ir.Location.unknown():
        payload = compiler.kernels(request.text, request.entry, {}).payload
        return LoweredText(payload.entry, chip.name, text_after(request.step, payload, chip, request.options))
