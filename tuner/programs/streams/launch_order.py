"""Attributes that record which launches the tokens of a program leave unordered."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.accesses import has_device_work, is_device_work
from tuner.mlir.effects.aliases import is_token
from tuner.mlir.effects.memory_effects import ATOMIC
from tuner.mlir.ir.reading import walk

# a launch's number in its block, then the numbers of the launches that it is ordered after
LAUNCH_ORDER = "tuner.launch"
LAUNCH, WAIT = "gpu.launch_func", "gpu.wait"


def record_launch_order(module: ir.Module, function: Op) -> None:
    """Records in attributes which launches of a function tokens leave unordered, if kernels have atomics.

    Order is computed anew from data (``dependency_graph``), without tokens: kernels that both update a
    counter would run one after the other then, and one that waits for the other one to count would wait for
    ever. Memory that two recorded kernels only use atomically does not order them.

        %2 = gpu.launch_func async [%0] @m::@k ... args(%counter : memref<i32>)
        %3 = gpu.launch_func async [%1] @m::@k ... args(%counter : memref<i32>)    // not after %2
      becomes, until ``erase_launch_order``
        %2 = gpu.launch_func async [%0] @m::@k ... args(%counter : memref<i32>) {tuner.launch = array<i64: 0>}
        %3 = gpu.launch_func async [%1] @m::@k ... args(%counter : memref<i32>) {tuner.launch = array<i64: 1>}
    """
    if not walk(module, *ATOMIC):
        return
    for block in {launch.block for launch in walk(function, LAUNCH)}:
        done_at: dict[Value, frozenset[int]] = {}  # token -> launches that are done when the token is
        waited: frozenset[int] = frozenset()  # launches that the host has waited for
        count = 0
        for op in (each.operation for each in block.operations):
            everything = frozenset(range(count))
            taken = [done_at.get(each, everything) for each in op.operands if is_token(each)]
            before = waited.union(*taken)
            tokens = [each for each in op.results if is_token(each)]
            if op.name == LAUNCH and tokens:
                op.attributes[LAUNCH_ORDER] = ir.DenseI64ArrayAttr.get([count, *sorted(before)])
                before |= {count}
                count += 1
            elif op.name == WAIT and not tokens:
                waited = before if taken else everything
            elif has_device_work(op) and not (is_device_work(op) and tokens):
                waited = everything
            done_at |= dict.fromkeys(tokens, before)


def may_run_together(launch: Op, later: Op) -> bool:
    """Returns whether the program leaves ``later`` and ``launch``, which its text has earlier, unordered."""
    if (
        LAUNCH_ORDER not in launch.attributes
        or LAUNCH_ORDER not in later.attributes
        or launch.block != later.block
    ):
        return False
    number, *_ = ir.DenseI64ArrayAttr(launch.attributes[LAUNCH_ORDER])
    return number not in list(ir.DenseI64ArrayAttr(later.attributes[LAUNCH_ORDER]))[1:]


def erase_launch_order(function: Op) -> None:
    """Removes the attributes that ``record_launch_order`` added, in place."""
    for launch in walk(function, LAUNCH):
        if LAUNCH_ORDER in launch.attributes:
            del launch.attributes[LAUNCH_ORDER]
