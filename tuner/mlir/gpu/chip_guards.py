"""Checks of device code on which LLVM would abort ("Cannot select"), or fail without telling why.

They change nothing: one names what the chip has no instruction for, one what the lowering left behind.
"""

from dataclasses import dataclass

from tuner.core.chips import CHIPS, Chip
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, WalkResult, ir
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk

LOWERED = ("llvm.", "nvvm.")
BUILT_IN = frozenset({"vprintf", "malloc", "free", "__assertfail"})  # CUDA's own, on every device
CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class Requirement:
    """The chips that have an instruction for ops of a prefix."""

    prefix: str  # of the op's name
    capability: int  # the least compute capability, major * 10 + minor
    is_specific: bool = False  # only chips whose name ends in "a"

    def allows(self, chip: Chip) -> bool:
        """Tells whether the chip has the instruction."""
        return chip.capability >= self.capability and (chip.is_specific or not self.is_specific)


# Each was tried on every chip of the table: LLVM of numba-cuda-mlir 0.6 aborts, or says nothing that helps.
REQUIREMENTS = (
    *(
        Requirement(f"nvvm.{name}", 90)
        for name in (
            *("cluster.", "cp.async.bulk", "elect.sync", "fence.mbarrier", "fence.proxy", "griddepcontrol"),
            *("mapa", "read.ptx.sreg.cluster", "stmatrix"),
        )
    ),
    Requirement("nvvm.setmaxregister", 90, is_specific=True),
    Requirement("nvvm.wgmma.", 90, is_specific=True),
    Requirement("nvvm.tcgen05.", 100, is_specific=True),
)


def reject_what_the_chip_lacks(module: ir.Module, chip: Chip) -> None:
    """Raises CandidateError(COMPILE) for the first operation that the chip has no instruction for."""
    unmet = [requirement for requirement in REQUIREMENTS if not requirement.allows(chip)]
    for name in _device_operations(module):
        for requirement in unmet:
            if name.startswith(requirement.prefix):
                fitting = [other for other, limits in CHIPS.items() if requirement.allows(limits)]
                allowed = ", ".join(fitting) or "none that is known"
                raise CandidateError(Stage.COMPILE, f"{name}: found chip {chip.name}, allowed {allowed}")


def reject_what_was_not_lowered(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) for an op that the lowering to NVVM left, or a call of a library.

    Translation would fail too, but name only the cast of types that it leaves behind. A call of a library,
    such as libdevice for ``math.exp``, would be found by ptxas or at launch.
    """
    missing = [name for name in _functions_without_body(module) if name not in BUILT_IN]
    if missing:
        raise CandidateError(
            Stage.COMPILE, f"kernel: found a call of {missing[0]}, allowed what PTX itself has"
        )
    left = [name for name in _device_operations(module) if not name.startswith(LOWERED)]
    named = [name for name in left if name != CAST] or left
    if named:
        raise CandidateError(Stage.COMPILE, f"kernel: found {named[0]}, allowed what lowers to NVVM")


def _functions_without_body(module: ir.Module) -> list[str]:
    functions = [op for holder in walk(module, "gpu.module") for op in walk(holder, "llvm.func")]
    declared = [op for op in functions if len(op.regions[0].blocks) == 0]
    return [name_of(op) for op in declared]


def _device_operations(module: ir.Module) -> list[str]:
    names: list[str] = []

    def visit(op: Op) -> WalkResult:
        names.append(op.name)
        return WalkResult.ADVANCE

    for holder in walk(module, "gpu.module"):
        for op in holder.regions[0].blocks[0].operations:
            op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return names
