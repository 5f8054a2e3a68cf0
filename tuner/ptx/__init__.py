"""The PTX simulator: runs GPU kernels on numpy, and tells what is wrong with them, without a GPU.

    found = simulate(ptx, "matmul", (2, 2, 1), (128, 1, 1), arguments=(a, b, c), dynamic_shared_bytes=49152)
    found.races, found.conflict_ratio, found.instructions

It executes the very text that ptxas gets, one lane per thread, many blocks at once. Asynchronous operations
get the least favourable legal timing: what they write is NaN until it is waited for. Races in shared memory
are found with vector clocks, whatever order the threads ran in; races between blocks by who touched what.
"""

from tuner.ptx.arguments import Argument, Pointer
from tuner.ptx.conflicts import BankConflict
from tuner.ptx.defects import Defect, Hazard, SimulationError, UnsupportedInstruction
from tuner.ptx.instruction import Module
from tuner.ptx.launch import run_program, simulate, simulate_module, simulate_touching
from tuner.ptx.parser import parse
from tuner.ptx.simulation import Simulation
from tuner.ptx.tensor_map import TensorMap
from tuner.ptx.touched import Touched

__all__ = [
    "Argument",
    "BankConflict",
    "Defect",
    "Hazard",
    "Module",
    "Pointer",
    "Simulation",
    "SimulationError",
    "TensorMap",
    "Touched",
    "UnsupportedInstruction",
    "parse",
    "run_program",
    "simulate",
    "simulate_module",
    "simulate_touching",
]
