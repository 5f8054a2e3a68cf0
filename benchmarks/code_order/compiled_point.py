"""A configuration of a recorded GEMM space, compiled, with its cycles by the machine-code model."""

import re
from collections.abc import Mapping

import numpy as np

from benchmarks.code_order.blocked_kernel import ENTRY, SOURCE, definitions
from benchmarks.code_order.nvrtc import Nvrtc
from tuner.core.gpu import WARP_THREADS, Chip
from tuner.core.matmul import Matmul
from tuner.gpu.cost_model.gpu import fma_per_cycle
from tuner.gpu.cost_model.occupancy import BlockNeeds, blocks_per_multiprocessor
from tuner.gpu.ptxsim.launch import SimulatedCall, kernel_of, prepare
from tuner.gpu.ptxsim.memory.access_log import Access
from tuner.gpu.ptxsim.ptx.parser import parse
from tuner.gpu.ptxsim.target.cycle_model import BlockWork, KernelCounts, executions, memory_cycles
from tuner.gpu.target.sass import listing_of, read_kernels
from tuner.runtime.wheel_tools import Tool

PROBLEM = Matmul(4096, 4096, 4096)
SIZE = 4096
REGISTERS = re.compile(r"SHI_REGISTERS=(\d+)")
LOOKED_AT = 2  # tiles along K that the simulator executes


def predict(knobs: Mapping[str, int], chip: Chip, multiprocessors: int, nvrtc: Nvrtc, tool: Tool) -> float:
    """Compiles a configuration; returns its cycles by the model.

    Raises ValueError where the compiler refuses the configuration, and where no block can be launched.
    """
    options = (f"--gpu-architecture={chip.name}", "--std=c++17", *definitions(knobs))
    ptx, cubin = nvrtc.compile(SOURCE, options)
    listing = listing_of(cubin, tool.path)
    (kernel,) = read_kernels(listing)
    threads = knobs["MDIMC"] * knobs["NDIMC"]
    shared = 4 * knobs["KWG"] * (knobs["SA"] * knobs["MWG"] + knobs["SB"] * knobs["NWG"])
    registers = int(REGISTERS.search(listing)[1])  # type: ignore[index]
    block_m, block_n = knobs["MWG"], knobs["NWG"]
    work = BlockWork(
        blocks=SIZE // block_m * (SIZE // block_n),
        warps=-(-threads // WARP_THREADS),
        resident=blocks_per_multiprocessor(chip, BlockNeeds(threads, registers, shared)),
        fetched_bytes=4.0 * SIZE * (block_m + block_n),
        stored_bytes=8.0 * block_m * block_n,
    )
    counts = KernelCounts(
        kernel,
        executions(kernel, SIZE * block_m * block_n / threads, SIZE / knobs["KWG"]),
        memory_cycles(kernel, _accesses(ptx, knobs), chip.capability),
        fma_per_cycle(PROBLEM, chip),
        chip.capability,
        block_m * block_n / threads,
    )
    if not work.resident:
        raise ValueError(f"found no block that {chip.name} can launch")
    return counts.cycles(work, multiprocessors)


def _accesses(ptx: str, knobs: Mapping[str, int]) -> tuple[Access, ...]:
    module = parse(ptx)
    depth = LOOKED_AT * knobs["KWG"]
    a, b = (np.zeros((depth, SIZE), np.float32) for _ in range(2))
    c = np.zeros((knobs["NWG"], SIZE), np.float32)
    arguments = (SIZE, SIZE, depth, 1.0, 0.0, a, b, c)
    grid = (SIZE // knobs["MWG"], SIZE // knobs["NWG"], 1)
    call = SimulatedCall(grid, (knobs["MDIMC"], knobs["NDIMC"], 1), arguments)
    return prepare(module, kernel_of(module, ENTRY)).accesses(call)
