"""The roofline of a machine: the least time that a kernel can take there; a check of reported rooflines.

Peaks of a CPU are measured with its fastest dot products of a dtype (``peak_set``).
"""

from dataclasses import dataclass, replace
from typing import Final

from tuner.core.dtypes import CPU_DTYPES, number_type
from tuner.core.errors import Refusal
from tuner.core.instruction_sets import (
    AMX_BF16,
    AMX_INT8,
    ARM_BF16,
    AVX512_BF16,
    DOTPROD,
    I8MM,
    VNNI,
)
from tuner.core.machine import Machine
from tuner.core.processors import instruction_sets_of

REACHED = "reached by a kernel"  # source of a roofline's flop/s
SHIPPED = "measured on a machine of this name"  # of a roofline that comes with tuner
FMA = "FMA"  # instructions that peaks are measured with, of floats without dot products
WORD_PRODUCTS = "products of 16-bit integers"  # the same, of integers
MOST_BYTES_PER_S: Final = 1e14  # from memory; NVIDIA B200: 8e12


@dataclass(frozen=True)
class Roofline:
    """The roofline of a machine for one dtype and number of threads: peak flop/s and memory bandwidth.

    Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
    """

    flop_per_s: float  # multiply-adds in registers, two each; at least what a right kernel was seen to reach
    bytes_per_s: float  # reading memory in order; of a GPU: copying within it; at least what a kernel reached
    # "measured by AMX", of a GPU "documented, at 1980 MHz", SHIPPED, or REACHED where a kernel was faster
    flop_source: str = "measured"

    def least_s(self, flop: int, moved_bytes: int, cache_bytes: int) -> float:
        """Returns a lower bound of the seconds for ``flop`` operations that move ``moved_bytes`` bytes.

        The memory bandwidth counts only if ``moved_bytes`` is more than ``cache_bytes``, the size of the last
        cache; 0: it counts always.
        """
        from_memory_s = moved_bytes / self.bytes_per_s if moved_bytes > cache_bytes else 0.0
        return max(flop / self.flop_per_s, from_memory_s)

    def raised(self, flop: int, moved_bytes: int, cache_bytes: int, time_s: float) -> "Roofline":
        """Returns the roofline with its peaks raised to what a correct kernel of ``time_s`` has reached.

        ``least_s`` of the same arguments is then at most ``time_s``, seconds per call. Measured peaks are too
        low where their loops were disturbed.
        """
        bound = self
        if flop / time_s > self.flop_per_s:
            bound = replace(bound, flop_per_s=flop / time_s, flop_source=REACHED)
        if moved_bytes > cache_bytes and moved_bytes / time_s > self.bytes_per_s:
            bound = replace(bound, bytes_per_s=moved_bytes / time_s)
        return bound

    def share(self, flop: int, moved_bytes: int, cache_bytes: int, time_s: float) -> float:
        """Returns the least possible time over a kernel's ``time_s``, 0 to 1: 1 is the roofline's speed.

        The peaks are first raised to what the kernel itself reached (``raised``). ``flop`` to
        ``cache_bytes``: as for ``least_s``.
        """
        bound = self.raised(flop, moved_bytes, cache_bytes, time_s)
        return min(1.0, bound.least_s(flop, moved_bytes, cache_bytes) / time_s)  # 1 + 2e-16 by rounding


def why_no_roofline(roofline: Roofline, limit_flop_per_s: float) -> Refusal | None:
    """Returns why no machine has a roofline's flop/s or bandwidth; None where both are possible.

    ``limit_flop_per_s``: upper bound of the machine's flop/s, from ``most_flop_per_s``.
    """
    if not 0 < roofline.flop_per_s <= limit_flop_per_s:
        return Refusal(
            f"found a roofline of {roofline.flop_per_s:g} flop/s, allowed at most {limit_flop_per_s:g}"
        )
    if not 0 < roofline.bytes_per_s <= MOST_BYTES_PER_S:
        return Refusal(
            f"found a roofline of {roofline.bytes_per_s:g} bytes/s, allowed at most {MOST_BYTES_PER_S:g}"
        )
    return None


@dataclass(frozen=True)
class DotProducts:
    """An instruction set with dot products: an instruction adds several products to each sum."""

    instruction_set: str  # as in headers of scripts: "amx-bf16"
    dtype: str
    label: str  # in messages: "AMX"
    core_flop: int = 0  # flop of a core per cycle, of tiles; 0 for an instruction set without tiles


# Of each dtype the fastest instruction set first. A product of two tiles takes 16 cycles (Intel 64
# optimization manual, 20.2).
# avx512-fp16 is not here: it sums products of f16 in f16, which has 11 bits.
DOT_PRODUCTS = (
    DotProducts(AMX_BF16, "bf16", "AMX", core_flop=1024),
    DotProducts(AVX512_BF16, "bf16", "AVX512-BF16"),
    DotProducts(AMX_BF16, "bf16x6", "AMX", core_flop=1024 // number_type("bf16x6").tile_products),
    DotProducts(AMX_INT8, "i8", "AMX", core_flop=2048),
    DotProducts(VNNI, "i8", "VNNI"),
    DotProducts(ARM_BF16, "bf16", "BFMMLA"),
    DotProducts(I8MM, "i8", "SMMLA"),
    DotProducts(DOTPROD, "i8", "SDOT"),
)
TILE_PRODUCTS = {row.dtype: row for row in DOT_PRODUCTS if row.core_flop}  # by dtype


def peak_set(dtype: str, machine: Machine) -> str:
    """Returns the instruction set with the fastest dot products of ``dtype``, such as "amx-bf16".

    "" where vector instructions without dot products are the fastest.
    """
    offered = set(instruction_sets_of(machine))
    if not machine.has_fast_bf16:
        offered.discard(AVX512_BF16)
    for products in DOT_PRODUCTS:
        if products.dtype == dtype and products.instruction_set in offered:
            return products.instruction_set
    return ""


def peak_source(dtype: str, machine: Machine) -> str:
    """Returns the name of the instructions that the peak of ``dtype`` is measured with: "AMX", "FMA", ..."""
    labels = {row.instruction_set: row.label for row in DOT_PRODUCTS}
    plain = FMA if number_type(dtype).is_float else WORD_PRODUCTS
    return labels.get(peak_set(dtype, machine), plain)


def peak_text(machine: Machine) -> str:
    """Returns the instructions with which peaks are measured, per dtype: "f32, f64 by FMA; i8 by VNNI"."""
    by: dict[str, list[str]] = {}
    for dtype in CPU_DTYPES:
        by.setdefault(peak_source(dtype, machine), []).append(dtype)
    return "; ".join(f"{', '.join(dtypes)} by {source}" for source, dtypes in by.items())
