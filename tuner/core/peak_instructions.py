"""By which instructions the peak of a processor is measured, for each element type of the operands."""

from tuner.core.instruction_sets import AMX_BF16, AMX_INT8, AVX512_BF16, VNNI, instruction_sets_of
from tuner.core.machine import Machine

FMA, WORDS = "FMA", "products of 16-bit integers"
SETS = {"bf16": (AMX_BF16, AVX512_BF16), "i8": (AMX_INT8, VNNI)}  # by dtype, the fastest first
NAMES = {AMX_BF16: "AMX", AMX_INT8: "AMX", AVX512_BF16: "AVX512-BF16", VNNI: "VNNI"}
DTYPES = ("f32", "f64", "bf16", "i8")


def peak_set(dtype: str, machine: Machine) -> str:
    """Returns the instruction set with the fastest products of ``dtype`` on a processor: "amx-bf16".

    "" where these are multiply-adds of vectors, of i8 products of 16-bit integers.
    """
    offered = instruction_sets_of(machine)
    return next((name for name in SETS.get(dtype, ()) if name in offered), "")


def peak_source(dtype: str, machine: Machine) -> str:
    """Returns by which instructions the peak of ``dtype`` is measured: "AMX", "VNNI", "FMA"."""
    return NAMES.get(peak_set(dtype, machine), WORDS if dtype == "i8" else FMA)


def peak_text(machine: Machine) -> str:
    """Returns by which instructions the peaks of a processor are measured: "f32, f64 by FMA; ..."."""
    by: dict[str, list[str]] = {}
    for dtype in DTYPES:
        by.setdefault(peak_source(dtype, machine), []).append(dtype)
    return "; ".join(f"{', '.join(dtypes)} by {source}" for source, dtypes in by.items())
