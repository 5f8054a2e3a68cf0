"""The instructions of a kernel's main loop, and in how many cycles one warp alone could issue them."""

import re
from collections import Counter
from dataclasses import dataclass

from tuner.gpu.ptxsim.target.cycle_model import main_loop, multiply_adds
from tuner.gpu.target.sass import Kernel, MachineInstruction

# Cycles between two products of one warp: what ptxas puts between two HMMA of equal shape.
PRODUCT_CYCLES = {("HMMA", "sm_80"): 8, ("HMMA", "sm_90"): 6, ("FFMA", "sm_80"): 2, ("FFMA", "sm_90"): 1}
# A wgmma of 64xNx16 in f16 takes the tensor cores of a multiprocessor N / 2 cycles: 2048 products in each.
WGMMA_COLUMNS = re.compile(r"HGMMA\.64x(\d+)x16")
COLUMNS_PER_CYCLE = 2
# The group of counts that a mnemonic belongs to; the first prefix decides.
KINDS = (
    ("LDGSTS", "copies"),
    ("LDSM", "matrix_loads"),
    ("LDS", "shared_loads"),
    ("STS", "shared_stores"),
    ("LDGDEPBAR", "waits"),
    ("DEPBAR", "waits"),
    ("WARPGROUP.DEPBAR", "waits"),
    ("BAR", "barriers"),
    ("SYNCS", "barriers"),
    ("LDL", "spills"),
    ("STL", "spills"),
)


@dataclass(frozen=True)
class LoopCounts:
    """The main loop of one kernel: instructions by group, cycles of one iteration."""

    instructions: int
    products: int
    matrix_loads: int  # ldmatrix
    shared_loads: int  # other loads; ptxas adds three to no register before copies
    shared_stores: int
    copies: int  # cp.async
    waits: int
    barriers: int  # of the block, and mbarriers
    spills: int
    others: int  # integers, predicates, moves, branches
    before_products: int  # instructions before the first product
    stall_cycles: int
    ideal_cycles: int  # the products alone

    @property
    def stalls_over_ideal(self) -> float:
        """Returns the ratio of stall cycles to ideal cycles."""
        return self.stall_cycles / self.ideal_cycles


def count_loop(kernel: Kernel, chip: str) -> LoopCounts | None:
    """Counts the main loop; None for a kernel without a loop with products."""
    bounds = main_loop(kernel)
    if bounds is None:
        return None
    body = kernel.code[slice(*bounds)]
    counts = Counter(map(_kind, body))
    first = next(index for index, each in enumerate(body) if multiply_adds(each))
    return LoopCounts(
        instructions=len(body),
        products=counts["products"],
        matrix_loads=counts["matrix_loads"],
        shared_loads=counts["shared_loads"],
        shared_stores=counts["shared_stores"],
        copies=counts["copies"],
        waits=counts["waits"],
        barriers=counts["barriers"],
        spills=counts["spills"],
        others=counts["others"],
        before_products=first,
        stall_cycles=sum(max(1, each.stall_cycles) for each in body),
        ideal_cycles=counts["products"] * _product_cycles(body[first].name, chip),
    )


def _product_cycles(name: str, chip: str) -> int:
    columns = WGMMA_COLUMNS.match(name)
    return int(columns[1]) // COLUMNS_PER_CYCLE if columns else PRODUCT_CYCLES[name.partition(".")[0], chip]


def _kind(instruction: MachineInstruction) -> str:
    if multiply_adds(instruction):
        return "products"
    return next((kind for prefix, kind in KINDS if instruction.name.startswith(prefix)), "others")
