"""Measures this processor's roofline: peak flop/s and bytes/s, by compiled loops.

Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import Template
from typing import Protocol, final

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.instruction_sets import (
    AMX_BF16,
    AMX_INT8,
    ARM_BF16,
    AVX512_BF16,
    DOTPROD,
    I8MM,
    NEON,
    TILE_SETS,
    VNNI,
)
from tuner.core.machine import Machine
from tuner.core.roofline import Roofline, peak_set, peak_source
from tuner.runtime.cpu.host import may_use_tiles, processors
from tuner.runtime.cpu.jit import JittedModule, PackedArguments, loop_text
from tuner.runtime.cpu.memory import placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import Clock, sample

# Of the loop of multiply-adds in vector registers, multiply_add.mlir.
# Numbers of independent sums that are tried, by the registers that there are: a latency of 3 to 8 cycles
# times one or two units needs 3 to 16, and factors need registers too. No number is best everywhere: on a
# Cascade Lake loops of 12 reach 115 GFLOP/s of f32, loops of 10 reach 129; on a Zen 5 loops of 10 find 400 of
# the 458 GFLOP/s of bf16 that kernels with 12 reach.
SUMS = {32: (8, 10, 12, 16, 20, 24), 16: (8, 10, 12, 13)}
REFERENCE_SUMS = 10  # of the loop whose times show a slower host: the same in every version
ITERATIONS = 100_000  # per sample, some 0.15 ms: long compared with a call, too short to be disturbed often
SAMPLES = 500
LEAST_SAMPLES = 5  # of each number of sums
WORD_DOTS = {"avx512": "llvm.x86.avx512.pmaddw.d.512", "avx2": "llvm.x86.avx2.pmadd.wd"}  # by isa


@dataclass(frozen=True)
class DotStep:
    """An instruction that adds several products of small numbers to each sum of a register."""

    intrinsic: str  # BITS: of a register
    factors: str  # type of the numbers
    products: int  # that are added to each sum


DOT_STEPS = {  # by instruction set
    AVX512_BF16: DotStep("llvm.x86.avx512bf16.dpbf16ps.512", "bf16", 2),
    VNNI: DotStep("llvm.x86.avx512.vpdpbusd.BITS", "i8", 4),
    DOTPROD: DotStep("llvm.aarch64.neon.sdot.v4i32.v16i8", "i8", 4),
    I8MM: DotStep("llvm.aarch64.neon.smmla.v4i32.v16i8", "i8", 8),  # 2 x 8 by 8 x 2
    ARM_BF16: DotStep("llvm.aarch64.neon.bfmmla", "bf16", 4),  # 2 x 4 by 4 x 2
}

# Of the loop of products of tiles, multiply_add_amx.mlir.
TILE_SUMS = 4  # independent: four hide a latency of 52 cycles, 16 for each product
TILE_ITERATIONS = 6_000  # per sample: a product of tiles takes 16 cycles
TILE_BYTES = 1024  # 16 rows of 64 bytes
TILE_ELEMENTS = 16 * 16  # of a tile of sums, 4 bytes each
TILE_DOTS = {AMX_BF16: "llvm.x86.tdpbf16ps.internal", AMX_INT8: "llvm.x86.tdpbssd.internal"}
TILE_ROW_BYTES = 64  # of A: its elements are the products per element of the sum, in one instruction

# Of the loop that reads memory, stream.mlir.
# Four times the last cache within these bounds. A virtual machine shows the cache of the whole socket (480 MB
# on one Xeon); to touch four times that takes 5 s, and reads not a byte per second more.
STREAM_CACHES = 4
STREAM_BYTES = (256 * 2**20, 1024 * 2**20)
STREAM_SAMPLES = 5
ITERATION_BYTES = 256  # read per iteration


def measure_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Returns the flop/s and bytes/s that ``threads`` pinned threads reach, the highest of several samples.

    ``dtype``: type of the multiply-adds.
    """
    machine = _without_refused_tiles(machine)
    team = ThreadTeam(threads)
    team.pin(processors(threads))
    source = f"measured by {peak_source(dtype, machine)}"
    try:
        return Roofline(flop_per_s(team, dtype, machine), _bytes_per_s(team, machine), source)
    finally:
        team.close()


def _without_refused_tiles(machine: Machine) -> Machine:
    is_refused = (machine.has_amx_bf16 or machine.has_amx_int8) and not may_use_tiles()
    if is_refused:
        return replace(machine, has_amx_bf16=False, has_amx_int8=False)
    return machine


class CountedLoop(Protocol):
    """A port: work that can be repeated, with a known number of floating-point operations."""

    @property
    def flop(self) -> int:
        """Returns the floating-point operations of one repetition."""

    def repeat(self, times: int) -> None:
        """Does the work ``times`` times."""


def flop_per_s(team: ThreadTeam, dtype: str, machine: Machine, samples: int = SAMPLES) -> float:
    """Returns the highest flop/s of a team's multiply-adds in registers.

    About ``samples`` samples are taken, of loops with different numbers of independent sums (SUMS).
    """
    loops = multiply_adds(team, dtype, machine, SUMS[machine.vector_registers])
    return highest_flop_per_s(loops, samples)


def highest_flop_per_s(loops: Sequence[CountedLoop], samples: int, clock: Clock = time.perf_counter) -> float:
    """Returns the highest flop/s of any loop in about ``samples`` samples in all, timed interleaved."""
    rounds = max(LEAST_SAMPLES, samples // len(loops))
    return max(loop.flop / sample(loop.repeat, 1, clock) for _ in range(rounds) for loop in loops)


@dataclass(frozen=True)
class MultiplyAddLoop:
    """A function ``name(sink, iterations)`` in LLVM dialect: a loop with its sums in registers."""

    name: str
    flop: int  # of one iteration; for integers, operations
    iterations: int  # of one call
    sink_bytes: int  # that the function reads and writes, zeros at first


@final
class MultiplyAdds:
    """A fixed loop of multiply-adds in registers on each thread of a team, to measure peak flop/s."""

    def __init__(self, team: ThreadTeam, loop: MultiplyAddLoop, code: JittedModule) -> None:
        self.flop = team.size * loop.iterations * loop.flop  # of one repeat
        self._team = team
        self._code = code
        self.sinks = [placed_empty((loop.sink_bytes,), np.dtype(np.uint8)) for _ in range(team.size)]
        for sink in self.sinks:
            sink.fill(0)
        self._arguments = [PackedArguments(sink.ctypes.data, loop.iterations) for sink in self.sinks]
        self._calls = tuple((code.addresses[loop.name], argument.address) for argument in self._arguments)

    def repeat(self, times: int) -> None:
        self._team.repeat(self._calls, times)


def multiply_adds(
    team: ThreadTeam, dtype: str, machine: Machine, sums: tuple[int, ...] = (REFERENCE_SUMS,)
) -> tuple[MultiplyAdds, ...]:
    """Returns a compiled loop of multiply-adds for each number of independent sums; for AMX only one."""
    text, loops = multiply_add_loops(dtype, machine, sums)
    code = JittedModule(text, tuple(loop.name for loop in loops))
    return tuple(MultiplyAdds(team, loop, code) for loop in loops)


def multiply_add_loops(
    dtype: str, machine: Machine, sums: tuple[int, ...]
) -> tuple[str, tuple[MultiplyAddLoop, ...]]:
    """Returns (MLIR text, loops): a function with a multiply-add loop for each number of independent sums.

    The loops use the fastest instructions of ``machine``; for AMX tiles there is only one loop. ``dtype``:
    f32, f64, bf16, or i8.
    """
    machine = _without_refused_tiles(machine)
    if peak_set(dtype, machine) in TILE_SETS:
        text = loop_text("multiply_add_amx").replace("INTRINSIC", TILE_DOTS[peak_set(dtype, machine)])
        tile_type = number_type(dtype).tiles or dtype
        of_tiles = TILE_SUMS * 2 * TILE_ELEMENTS * (TILE_ROW_BYTES // number_type(tile_type).bytes)
        flop = of_tiles // number_type(dtype).tile_products
        loop = MultiplyAddLoop("multiply_add", flop, TILE_ITERATIONS, (1 + TILE_SUMS) * TILE_BYTES)
        return text, (loop,)
    step, flop = _step(dtype, machine)
    loops = tuple(
        MultiplyAddLoop(f"multiply_add_{count}", count * flop, ITERATIONS, count * machine.vector_bytes)
        for count in sums
    )
    texts = (_function_of(loop.name, count) for loop, count in zip(loops, sums, strict=True))
    return "\n".join((step, *texts)), loops


def _function_of(name: str, sums: int) -> str:
    numbers = range(sums)
    at = "llvm.getelementptr %sink[{0}] : (!llvm.ptr) -> !llvm.ptr, !vector"
    parts = {
        "NAME": name,
        "SUMS": ", ".join(f"%s{number}: !vector" for number in numbers),
        "FIRST": ", ".join("%a" for _ in numbers),
        "MORE": ", ".join(f"%n{number}" for number in numbers),
        "TYPES": ", ".join("!vector" for _ in numbers),
        "STEPS": "\n  ".join(
            f"%n{number} = llvm.call @step(%s{number}, %a) : (!vector, !vector) -> !vector"
            for number in numbers
        ),
        "STORES": "\n  ".join(
            f"%o{number} = {at.format(number)}\n  llvm.store %n{number}, %o{number} : !vector, !llvm.ptr"
            for number in numbers
        ),
    }
    return Template(loop_text("multiply_add")).substitute(parts)


def _step(dtype: str, machine: Machine) -> tuple[str, int]:
    """Returns (text of ``!vector`` and of ``@step``, one multiply-add; its floating-point operations)."""
    dot = DOT_STEPS.get(peak_set(dtype, machine))
    if dot is not None:
        return _dot_step(dot, number_type(dtype).sums, machine)
    if not number_type(dtype).is_float:
        return _word_step(machine)
    element = number_type(dtype).vector or number_type(dtype).sums
    lanes = machine.vector_bytes // number_type(element).bytes
    return f"!vector = vector<{lanes}x{element}>\n{loop_text('fma')}", 2 * lanes


def _dot_step(dot: DotStep, sums: str, machine: Machine) -> tuple[str, int]:
    lanes = machine.vector_bytes // number_type(sums).bytes
    count = machine.vector_bytes // number_type(dot.factors).bytes
    types = f"!vector = vector<{lanes}x{sums}>\n!factors = vector<{count}x{dot.factors}>\n"
    intrinsic = dot.intrinsic.replace("BITS", str(8 * machine.vector_bytes))
    return types + loop_text("dot_product").replace("INTRINSIC", intrinsic), 2 * dot.products * lanes


def _word_step(machine: Machine) -> tuple[str, int]:
    """Returns the text of one multiply-add of bytes that are widened to 16 bits, and its operations."""
    lanes = machine.vector_bytes // 4
    if machine.isa == NEON:
        text = loop_text("multiply_words").replace("FIRST", str(list(range(lanes))))
        types = f"!vector = vector<{lanes}xi32>\n!words = vector<{2 * lanes}xi16>\n"
        return f"{types}!factors = vector<{lanes}xi16>\n{text}", 2 * lanes
    types = f"!vector = vector<{lanes}xi32>\n!factors = vector<{2 * lanes}xi16>\n"
    return types + loop_text("dot_2_words").replace("INTRINSIC", WORD_DOTS[machine.isa]), 4 * lanes


@final
class MemoryReads:
    """A loop that reads memory in order, one part on each thread of a team, to measure bytes/s."""

    def __init__(self, team: ThreadTeam, least_bytes: int) -> None:
        memory = placed_empty((least_bytes // 4,), np.dtype(np.float32))
        memory.fill(1.0)
        # whole iterations of the loop per thread
        share = least_bytes // team.size // ITERATION_BYTES * ITERATION_BYTES
        self.bytes = share * team.size  # of one repeat
        self._team = team
        self._memory = memory
        self._code = JittedModule(loop_text("stream"), ("stream",))
        self._sinks = [placed_empty((64,), np.dtype(np.float32)) for _ in range(team.size)]
        self._arguments = [
            PackedArguments(memory.ctypes.data + index * share, share // ITERATION_BYTES, sink.ctypes.data)
            for index, sink in enumerate(self._sinks)
        ]
        self._calls = tuple(
            (self._code.addresses["stream"], argument.address) for argument in self._arguments
        )

    def repeat(self, times: int) -> None:
        self._team.repeat(self._calls, times)


def _bytes_per_s(team: ThreadTeam, machine: Machine) -> float:
    least, most = STREAM_BYTES
    reads = MemoryReads(team, max(least, min(STREAM_CACHES * machine.l3_bytes, most)))
    return reads.bytes / min(sample(reads.repeat, 1) for _ in range(STREAM_SAMPLES))
