"""Rejects device code on which LLVM would abort: instructions that a chip has not ("Cannot select")."""

from dataclasses import dataclass
from typing import Any

from tuner.chips import CHIPS, Chip
from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir


@dataclass(frozen=True)
class Requirement:
    """Which chips an operation can be selected for."""

    prefix: str  # of the operation's name
    capability: int  # the least
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
    for name in _nvvm_operations(module):
        for requirement in unmet:
            if name.startswith(requirement.prefix):
                fitting = [other for other, limits in CHIPS.items() if requirement.allows(limits)]
                allowed = ", ".join(fitting) or "none that is known"
                raise CandidateError(Stage.COMPILE, f"{name}: found chip {chip.name}, allowed {allowed}")


def _nvvm_operations(module: ir.Module) -> list[str]:
    names: list[str] = []

    def visit(op: Any) -> Any:
        if op.name.startswith("nvvm."):
            names.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names
