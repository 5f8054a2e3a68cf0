"""The steps in which a program is lowered for a device, by their names. Needs no MLIR."""

from typing import Literal, get_args

LoweringStep = Literal["device-memory", "async", "streams", "gpux", "llvm", "ptx"]
STEPS: tuple[LoweringStep, ...] = get_args(LoweringStep)
# Steps behind the asynchronous form, which therefore have a choice of it.
WITH_FORM: tuple[LoweringStep, ...] = ("llvm", "ptx")
