"""Measures the two limits of the roofline model (Williams et al., CACM 2009) on this processor.

The limits are times of compiled loops: multiply_add.mlir in registers and stream.mlir over memory. A thread
team runs these loops like kernels.
"""

from dataclasses import dataclass, replace
from importlib.resources import files
from typing import final

import numpy as np

from tuner.core.element_types import number_type
from tuner.core.instruction_sets import AMX_BF16, AMX_INT8, AVX512_BF16, VNNI
from tuner.core.machine import Machine, Roofline
from tuner.core.peak_instructions import peak_set, peak_source
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.mlir.tile_permission import may_use_tiles
from tuner.runtime.cpu.describe_host import processors
from tuner.runtime.cpu.guarded_arrays import placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.runtime.timing import sample

# Independent sums: a latency of 4 or 5 cycles times two units needs 8 to 10, and AVX2 has 16 registers.
# Not more: on a Cascade Lake, loops of 12 reach 115 GFLOP/s of f32 and 444 of i8, loops of 10 reach 129 and
# 461. A roofline below what kernels reach would reject correct kernels.
ACCUMULATORS = 10
STREAM_BYTES = 256 * 2**20  # at least; more than any cache
ITERATION_BYTES = 256  # that stream.mlir reads per iteration
# Of multiply_add.mlir per sample, some 0.15 ms: long compared with a call, too short to be disturbed often.
ITERATIONS = 100_000
SAMPLES = 500
TILE_SUMS = 4  # independent sums of multiply_add_amx.mlir: four hide the latency of a tile product
TILE_ITERATIONS = 6_000  # of it per sample: a product of tiles takes 16 cycles
TILE_BYTES = 1024  # 16 rows of 64 bytes
TILE_DOTS = {"bf16": "llvm.x86.tdpbf16ps.internal", "i8": "llvm.x86.tdpbssd.internal"}  # by dtype
TILE_DEPTH = {"bf16": 32, "i8": 64}  # products per element of the sum, in one instruction
WORD_DOTS = {"avx512": "llvm.x86.avx512.pmaddw.d.512", "avx2": "llvm.x86.avx2.pmadd.wd"}  # by isa


@dataclass(frozen=True)
class MultiplyAddLoop:
    """A function ``multiply_add(sink, iterations)`` in LLVM dialect: a loop with its sums in registers."""

    text: str
    flop: int  # of one iteration; for integers, operations
    iterations: int  # of one call
    sink_bytes: int  # that the function reads and writes, zeros at first


@final
class MultiplyAdds:
    """A fixed loop of multiply-adds in registers on each thread of a team, to measure peak flop/s.

    ``flop`` is that of one ``repeat(1)``, over all threads; ``sinks`` holds the memory of each thread's loop,
    zeros at first.
    """

    def __init__(self, team: ThreadTeam, dtype: str, machine: Machine) -> None:
        """Compiles the loop for vectors of ``dtype`` as wide as the machine's registers."""
        loop = multiply_add_loop(dtype, machine)
        self.flop = team.size * loop.iterations * loop.flop  # of one repeat
        self._team = team
        self._code = JittedModule(loop.text, ("multiply_add",))
        self.sinks = [placed_empty((loop.sink_bytes,), np.dtype(np.uint8)) for _ in range(team.size)]
        for sink in self.sinks:
            sink.fill(0)
        self._arguments = [PackedArguments(sink.ctypes.data, loop.iterations) for sink in self.sinks]
        address = self._code.addresses["multiply_add"]
        self._calls = tuple((address, one.address) for one in self._arguments)

    def repeat(self, times: int) -> None:
        """Calls the loop ``times`` times on each thread of the team, in parallel."""
        self._team.repeat(self._calls, times)


def measure_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Returns the flop/s in ``dtype`` and the bytes/s of reads that ``threads`` pinned threads reach here.

    Each is the highest of several samples. Pins the calling thread to a processor.
    """
    machine = _without_refused_tiles(machine)
    team = ThreadTeam(threads)
    team.pin(processors(threads))
    source = f"measured by {peak_source(dtype, machine)}"
    try:
        return Roofline(flop_per_s(team, dtype, machine), _bytes_per_s(team, machine), source)
    finally:
        team.close()


def flop_per_s(team: ThreadTeam, dtype: str, machine: Machine, samples: int = SAMPLES) -> float:
    """Returns the flop/s that a team reaches with multiply-adds in registers, the highest of ``samples``."""
    loops = MultiplyAdds(team, dtype, machine)
    best_s = min(sample(loops.repeat, 1) for _ in range(samples))
    return loops.flop / best_s


def _without_refused_tiles(machine: Machine) -> Machine:
    """Returns the machine without AMX where the operating system refuses tiles to this process."""
    has_tiles = (machine.has_amx_bf16 or machine.has_amx_int8) and not may_use_tiles()
    return replace(machine, has_amx_bf16=False, has_amx_int8=False) if has_tiles else machine


def multiply_add_loop(dtype: str, machine: Machine) -> MultiplyAddLoop:
    """Returns the loop of the machine's fastest instructions for products of ``dtype``.

    ``dtype`` is f32 or f64 (vector multiply-adds of this type), bf16 (AMX tiles, else AVX512-BF16, else
    multiply-adds of f32) or i8 (AMX tiles, else VNNI, else products of 16-bit integers). Raises KeyError for
    another one, and for i8 on a machine without VNNI and AVX2.
    """
    machine = _without_refused_tiles(machine)
    if peak_set(dtype, machine) in (AMX_BF16, AMX_INT8):
        text = loop_text("multiply_add_amx").replace("INTRINSIC", TILE_DOTS[dtype])
        flop = TILE_SUMS * 2 * 16 * 16 * TILE_DEPTH[dtype]
        return MultiplyAddLoop(text, flop, TILE_ITERATIONS, (1 + TILE_SUMS) * TILE_BYTES)
    text, flop = _vector_loop(dtype, machine)
    return MultiplyAddLoop(text, ACCUMULATORS * flop, ITERATIONS, ACCUMULATORS * machine.vector_bytes)


def _vector_loop(dtype: str, machine: Machine) -> tuple[str, int]:
    """Returns LLVM dialect of the loop in vector registers, and the flop of one of its instructions."""
    if dtype == "i8":
        return i8_loop(machine, is_in_fours=peak_set(dtype, machine) == VNNI)
    element = {"f64": "f64", "f32": "f32", "bf16": "f32"}[dtype]
    lanes = machine.vector_bytes // number_type(element).bytes
    if peak_set(dtype, machine) == AVX512_BF16:
        return loop_text("multiply_add_bf16"), 4 * lanes  # two multiply-adds in each lane
    return f"!vector = vector<{lanes}x{element}>\n{loop_text('multiply_add')}", 2 * lanes


def i8_loop(machine: Machine, *, is_in_fours: bool) -> tuple[str, int]:
    """Returns a loop of i8 multiply-adds as text in LLVM dialect, and the operations of one of its steps.

    A step updates one register of sums. ``is_in_fours``: by dot products of four bytes, one instruction
    (VNNI); otherwise by dot products of two 16-bit integers and an addition, two instructions, and KeyError
    is raised for a machine without AVX2.
    """
    lanes = machine.vector_bytes // 4
    if is_in_fours:
        dots, factors, step = 4, "i8", "dot_4_bytes"
        intrinsic = f"llvm.x86.avx512.vpdpbusd.{8 * machine.vector_bytes}"
    else:
        dots, factors, step = 2, "i16", "dot_2_words"
        intrinsic = WORD_DOTS[machine.isa]
    types = f"!vector = vector<{lanes}xi32>\n!factors = vector<{dots * lanes}x{factors}>\n"
    text = types + loop_text(step).replace("INTRINSIC", intrinsic) + loop_text("multiply_add_i8")
    return text, 2 * dots * lanes


def _bytes_per_s(team: ThreadTeam, machine: Machine) -> float:
    size = max(STREAM_BYTES, 4 * machine.l3_bytes)
    memory = placed_empty((size // 4,), np.dtype(np.float32))
    memory.fill(1.0)
    share = size // team.size // ITERATION_BYTES * ITERATION_BYTES
    code = JittedModule(loop_text("stream"), ("stream",))
    sinks = [placed_empty((64,), np.dtype(np.float32)) for _ in range(team.size)]
    arguments = [
        PackedArguments(memory.ctypes.data + index * share, share // ITERATION_BYTES, sink.ctypes.data)
        for index, sink in enumerate(sinks)
    ]
    calls = tuple((code.addresses["stream"], one.address) for one in arguments)
    best_s = min(sample(lambda times: team.repeat(calls, times), 1) for _ in range(5))
    return share * team.size / best_s


def loop_text(name: str) -> str:
    """Returns the MLIR text, in LLVM dialect, of the file ``name``.mlir in the folder tuner/runtime/cpu."""
    return (files("tuner.runtime.cpu") / f"{name}.mlir").read_text()
