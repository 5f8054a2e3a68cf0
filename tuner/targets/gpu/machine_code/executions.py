"""Infers how often a warp executes each instruction of a kernel, from the multiply-adds required."""

import re

from tuner.targets.gpu.machine_code.listing import Kernel, MachineInstruction

WARP_LANES, WARPGROUP_LANES = 32, 128
# Shapes of mma.sync in names: "HMMA.16816.F32" has 16 x 8 x 16; of wgmma: "HGMMA.64x256x16.F32".
WARP_SHAPE = re.compile(r"\.(16|8)(8|4)(64|32|16|8|4)(?:\.|$)")
GROUP_SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)")
SCALAR_PRODUCTS = {"FFMA": 1, "DFMA": 1, "HFMA2": 2}
WARP_PRODUCTS = ("HMMA", "IMMA", "QMMA", "DMMA")
GROUP_PRODUCTS = ("HGMMA", "IGMMA", "QGMMA")


def multiply_adds(instruction: MachineInstruction) -> int:
    """Returns how many multiply-adds one lane does in an FFMA, DFMA, HFMA2 or matrix instruction; else 0.

    An integer multiply-add outside of matrix instructions (IMAD) counts as 0.
    """
    name = instruction.mnemonic
    if name in SCALAR_PRODUCTS:
        return SCALAR_PRODUCTS[name]
    shape, lanes = None, WARP_LANES
    if name in WARP_PRODUCTS:
        shape = WARP_SHAPE.search(instruction.name)
    elif name in GROUP_PRODUCTS:
        shape, lanes = GROUP_SHAPE.search(instruction.name), WARPGROUP_LANES
    return int(shape[1]) * int(shape[2]) * int(shape[3]) // lanes if shape else 0


def executions(kernel: Kernel, owed: float, outer_iterations: float = 1.0) -> tuple[float, ...]:
    """Returns how often a warp executes each instruction of a kernel, one number per instruction.

    ``owed``: the multiply-adds that a lane must execute. The innermost loop with most products gets as many
    iterations as needed to execute the multiply-adds that the code outside of this loop does not. The loop
    around has ``outer_iterations`` iterations; all other code is executed once.
    """
    products = [multiply_adds(each) for each in kernel.code]
    counts = [1.0] * len(products)
    inner = main_loop(kernel)
    if inner is None:
        return tuple(counts)
    around = [loop for loop in kernel.loops() if loop != inner and _holds(loop, inner)]
    outer = min(around, key=lambda loop: loop[1] - loop[0], default=None)
    if outer is not None:
        counts[slice(*outer)] = [outer_iterations] * (outer[1] - outer[0])
    entered = counts[inner[0]]
    counts[slice(*inner)] = [0.0] * (inner[1] - inner[0])
    missing = owed - sum(count * each for count, each in zip(counts, products, strict=True))
    turns = max(missing / sum(products[slice(*inner)]), entered)
    counts[slice(*inner)] = [turns] * (inner[1] - inner[0])
    return tuple(counts)


def main_loop(kernel: Kernel) -> tuple[int, int] | None:
    """Returns the innermost loop with most products: (index of its first instruction, after its last).

    Innermost means that the loop contains no other loop with products. None for a kernel without such a loop.
    """
    products = [multiply_adds(each) for each in kernel.code]
    loops = [loop for loop in kernel.loops() if any(products[slice(*loop)])]
    innermost = [loop for loop in loops if not any(other != loop and _holds(loop, other) for other in loops)]
    return max(innermost, key=lambda loop: sum(products[slice(*loop)]), default=None)


def _holds(loop: tuple[int, int], other: tuple[int, int]) -> bool:
    return loop[0] <= other[0] and other[1] <= loop[1]
