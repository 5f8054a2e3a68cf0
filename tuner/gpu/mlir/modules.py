"""The ``gpu.module`` ops of a module: merged into one, apart from those that are compiled already."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import name_of, walk

OBJECTS = "tuner.objects"  # attribute of a gpu.module: the objects of its gpu.binary


def has_objects(holder: Op) -> bool:
    """Returns whether a ``gpu.module`` is compiled already: it holds its PTX as an attribute."""
    return OBJECTS in holder.attributes


def merge_gpu_modules(module: ir.Module) -> None:
    """Moves all symbols of ``gpu.module`` ops that are not compiled yet into the first one, in place.

    A kernel whose name is used already gets another name, and its launches follow. Raises
    CandidateError(COMPILE) for another symbol whose name is used already.

        gpu.launch_func @second::@k blocks in ...
        gpu.module @second {
      becomes
        gpu.launch_func @first::@k_1 blocks in ...
        gpu.func @k_1() kernel {
    """
    holders = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    holders = [holder for holder in holders if not has_objects(holder)]
    if len(holders) < 2:
        return
    first = holders[0]
    taken = set(map(name_of, first.regions[0].blocks[0].operations))
    for holder in holders[1:]:
        for op in list(holder.regions[0].blocks[0].operations):
            _move(module, op.operation, name_of(holder), first, taken)
        holder.erase()


def _move(module: ir.Module, op: Op, holder_name: str, first: Op, taken: set[str]) -> None:
    old = name_of(op)
    new = old
    number = 0
    while new in taken:
        number += 1
        new = f"{old}_{number}"
    if new != old and op.name != "gpu.func":  # only launches are given new names, not uses inside of kernels
        found = f"found a second {op.name} @{old}"
        raise CandidateError(Stage.COMPILE, f"@{holder_name}: {found}, allowed one in all modules")
    taken.add(new)
    op.attributes["sym_name"] = ir.StringAttr.get(new)
    before = f"@{holder_name}::@{old}"
    for launch in walk(module, "gpu.launch_func"):
        if str(launch.attributes["kernel"]) == before:
            launch.attributes["kernel"] = ir.SymbolRefAttr.get([name_of(first), new])
    first.regions[0].blocks[0].append(op)
