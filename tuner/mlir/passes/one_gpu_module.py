"""Moves the kernels of all ``gpu.module`` ops into the first one, so that a program is one PTX text."""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.symbols import name_of


def merge_gpu_modules(module: ir.Module) -> None:
    """Merges in order; kernels are renamed where two have one name, and their launches follow.

    Raises CandidateError(COMPILE) for two other symbols of one name.
    """
    holders = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    if len(holders) < 2:
        return
    first = holders[0]
    taken = {name_of(op) for op in first.regions[0].blocks[0].operations}
    for holder in holders[1:]:
        for op in list(holder.regions[0].blocks[0].operations):
            _move(module, op.operation, name_of(holder), first, taken)
        holder.erase()


def _move(module: ir.Module, op: Any, holder_name: str, first: Any, taken: set[str]) -> None:
    old = name_of(op)
    new = _unique(old, taken)
    if new != old and op.name != "gpu.func":
        found = f"found a second {op.name} @{old}"
        raise CandidateError(Stage.COMPILE, f"@{holder_name}: {found}, allowed one in all modules")
    taken.add(new)
    op.attributes["sym_name"] = ir.StringAttr.get(new)
    before = f"@{holder_name}::@{old}"
    for launch in walk(module, "gpu.launch_func"):
        if str(launch.attributes["kernel"]) == before:
            launch.attributes["kernel"] = ir.SymbolRefAttr.get([name_of(first), new])
    first.regions[0].blocks[0].append(op)


def _unique(name: str, taken: set[str]) -> str:
    number = 0
    candidate = name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
