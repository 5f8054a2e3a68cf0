"""The names of the steps in which a program is lowered for a device. Needs no MLIR."""

from typing import Literal, get_args

LoweringStep = Literal["device-memory", "async", "streams", "gpux", "llvm", "ptx"]
STEPS: tuple[LoweringStep, ...] = get_args(LoweringStep)
# Steps after the asynchronous form, which therefore have an option for that form.
WITH_FORM: tuple[LoweringStep, ...] = ("llvm", "ptx")
