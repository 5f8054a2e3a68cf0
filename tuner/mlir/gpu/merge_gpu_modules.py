"""Moves the kernels of all ``gpu.module`` ops into the first one, so that they become one PTX text.

Takes a module after outlining; kernels whose name is already used are renamed, and their launches follow.
Modules that are compiled already stay (``ready_kernels.py``). Not handled: two symbols of one name other than
kernels, which is an error.

    gpu.launch_func @second::@k blocks in ...
    gpu.module @second {
  becomes
    gpu.launch_func @first::@k_1 blocks in ...
    gpu.func @k_1() kernel {
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, ir
from tuner.mlir.gpu.ready_modules import is_ready
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk


def merge_gpu_modules(module: ir.Module) -> None:
    """Moves all symbols of ``gpu.module`` ops that are not compiled yet into the first of them, in place.

    A kernel whose name is used already gets another name, and its launches follow. Raises
    CandidateError(COMPILE) for any other symbol whose name is used already.
    """
    holders = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    holders = [holder for holder in holders if not is_ready(holder)]
    if len(holders) < 2:
        return
    first = holders[0]
    taken = {name_of(op) for op in first.regions[0].blocks[0].operations}
    for holder in holders[1:]:
        for op in list(holder.regions[0].blocks[0].operations):
            _move(module, op.operation, name_of(holder), first, taken)
        holder.erase()


def _move(module: ir.Module, op: Op, holder_name: str, first: Op, taken: set[str]) -> None:
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
