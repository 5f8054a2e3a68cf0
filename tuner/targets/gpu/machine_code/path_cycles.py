"""Cycles of a warp's memory accesses on the path to shared memory and L1, from the lanes' addresses."""

from collections.abc import Iterable

import numpy as np

from tuner.cost_model.gpu import L2_BYTES_PER_CYCLE
from tuner.cost_model.memory_path import WARP_BYTES, access_cycles, stream_cycles
from tuner.simulator.ptx.races.access_sample import Access
from tuner.targets.gpu.machine_code.listing import Kernel, MachineInstruction

# Mnemonic of machine code -> (PTX opcode that it is compiled from, kind of access)
ORIGINS = {
    "LDS": ("ld.shared", "load_shared"),
    "LDSM": ("ldmatrix", "load_shared"),
    "STS": ("st.shared", "store_shared"),
    "STSM": ("stmatrix", "store_shared"),
    "LDGSTS": ("cp.async.c", "store_shared"),
    "LDG": ("ld.global", "load_global"),
}
SPILLS = ("LDL", "STL")  # written through to the L2, with few hits in the L1
MATRIX_WORDS = 4  # of each lane whose address ldmatrix and stmatrix take


def memory_cycles(kernel: Kernel, accesses: Iterable[Access], capability: int) -> dict[int, float]:
    """Returns the predicted cycles of a warp at each memory instruction of a kernel, by index in the code.

    An access to shared memory or a global load costs the mean of the simulated ``accesses`` of its kind and
    width, else of its kind; without such accesses, the cycles of lanes that access consecutive words. Global
    stores and atomics cost one cycle per word, spills the cycles of their bytes on the path to the L2.
    ``capability``: that of the chip, such as 90.
    """
    costs = _mean_costs(accesses, capability)
    found = {place: _cycles(each, costs, capability) for place, each in enumerate(kernel.code)}
    return {place: cycles for place, cycles in found.items() if cycles}


def _mean_costs(accesses: Iterable[Access], capability: int) -> dict[tuple[str, int], float]:
    """Returns the mean cycles by (mnemonic, width in words); width 0 stands for any."""
    seen: dict[tuple[str, int], list[float]] = {}
    for access in accesses:
        for mnemonic, (opcode, kind) in ORIGINS.items():
            if access.opcode.startswith(opcode):
                cycles = access_cycles(kind, np.array(access.words), access.width, capability)
                for width in (access.width, 0):
                    seen.setdefault((mnemonic, width), []).append(cycles)
    return {key: float(np.mean(each)) for key, each in seen.items()}


def _cycles(instruction: MachineInstruction, costs: dict[tuple[str, int], float], capability: int) -> float:
    name, width = instruction.mnemonic, instruction.words
    if name in SPILLS:
        return WARP_BYTES * width / L2_BYTES_PER_CYCLE
    if name in ("LDSM", "STSM"):
        width = MATRIX_WORDS
    if name in ORIGINS:
        known = costs.get((name, width), costs.get((name, 0)))
        return known if known is not None else stream_cycles(ORIGINS[name][1], width, capability)
    return float(width) if name in ("STG", "RED", "ATOM", "ATOMG") else 0.0
