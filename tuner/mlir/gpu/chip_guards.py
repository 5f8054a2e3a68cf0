"""Checks of device code on which LLVM would abort ("Cannot select"), or fail without a reason."""

from dataclasses import dataclass

from tuner.core.gpu import CHIPS, Chip
from tuner.mlir.bindings import Op, WalkResult, ir
from tuner.mlir.ir.reading import callee_of, name_of, unsupported, walk, walk_ops

LOWERED = ("llvm.", "nvvm.")
BUILT_IN = frozenset({"vprintf", "malloc", "free", "__assertfail"})  # CUDA's own, on every device
CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class Requirement:
    """The least compute capability (90: sm_90) that ops need whose names start with ``prefix``.

    With ``is_specific``, the chip's name must also end in "a"; sm_100a lacks some of what sm_90a has, hence
    ``most``. With ``words``, only inline PTX with this text.
    """

    prefix: str  # of the op's name
    capability: int  # the lowest compute capability, major * 10 + minor
    is_specific: bool = False  # only chips whose name ends in "a"
    most: int = 1000  # the highest compute capability
    words: str = ""  # of inline PTX: a part of its text; "" for any op of the prefix

    def is_of(self, op: Op) -> bool:
        return not self.words or self.words in ir.StringAttr(op.attributes["asm_string"]).value

    def allows(self, chip: Chip) -> bool:
        is_between = self.capability <= chip.capability <= self.most
        return is_between and (chip.is_specific or not self.is_specific)


# Each was tried on every chip of the table: LLVM of numba-cuda-mlir 0.6 aborts, or gives no useful message.
REQUIREMENTS = (
    *(
        Requirement(f"nvvm.{name}", 90)
        for name in (
            *("cluster.", "cp.async.bulk", "elect.sync", "fence.mbarrier", "fence.proxy", "griddepcontrol"),
            *("mapa", "read.ptx.sreg.cluster", "stmatrix"),
        )
    ),
    *(
        Requirement(f"nvgpu.{name}", 90)
        for name in ("tma.", "mbarrier.arrive.expect_tx", "mbarrier.try_wait")  # of PTX: sm_90
    ),
    Requirement("nvgpu.warpgroup.", 90, is_specific=True, most=90),
    Requirement("nvvm.setmaxregister", 90, is_specific=True),
    Requirement("nvvm.wgmma.", 90, is_specific=True, most=90),
    Requirement("nvvm.tcgen05.", 100, is_specific=True),
    *(Requirement("llvm.inline_asm", 89, words=f".f32.{kind}.") for kind in ("e4m3", "e5m2")),  # mma.sync
)


def reject_what_the_chip_lacks(module: ir.Module, chip: Chip) -> None:
    """Raises CandidateError(COMPILE) if an op in a ``gpu.module`` needs what ``chip`` lacks."""
    unmet = [requirement for requirement in REQUIREMENTS if not requirement.allows(chip)]
    for name, ops in _device_operations(module).items():
        for requirement in unmet:
            lacking = list(filter(requirement.is_of, ops)) if name.startswith(requirement.prefix) else []
            if lacking:
                fitting = [other for other, limits in CHIPS.items() if requirement.allows(limits)]
                raise unsupported(lacking[0], f"chip {chip.name}", ", ".join(fitting) or "none that is known")


def reject_what_was_not_lowered(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) if a ``gpu.module`` has an op that was not lowered, or calls a library.

    Translation would fail too, but its message names only the type cast that remains; a library's function,
    such as libdevice's, would be found by ptxas or at launch. Functions that CUDA itself has are allowed.
    """
    operations = _device_operations(module)
    missing = {
        name_of(op): op
        for op in operations.get("llvm.func", ())
        if len(op.regions[0].blocks) == 0 and name_of(op) not in BUILT_IN
    }
    if missing:
        calls = [op for op in operations.get("llvm.call", ()) if callee_of(op) in missing]
        name = callee_of(calls[0]) if calls else next(iter(missing))
        raise unsupported([*calls, missing[name]][0], f"a call of {name}", "what PTX itself has")
    left = [name for name in operations if not name.startswith(LOWERED)]
    named = [name for name in left if name != CAST] or left
    if named:
        raise unsupported(operations[named[0]][0], "no lowering", "what lowers to NVVM")


def _device_operations(module: ir.Module) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = {}

    def visit(op: Op) -> WalkResult:
        found.setdefault(op.name, []).append(op)
        return WalkResult.ADVANCE

    for holder in walk(module, "gpu.module"):
        for op in holder.regions[0].blocks[0].operations:
            walk_ops(op, visit, is_pre_order=True)
    return found
