"""Keeps what tokens leave unordered on purpose: kernels that meet in memory that they use atomically.

The order of a program's work is computed anew from its data (``dependency_graph.py``), after its tokens are
dropped. Kernels that both update a counter would run one after the other then, and a kernel that waits for
the other one to count would wait for ever. So launches that no token, and no wait of the host, orders are
noted before the tokens are dropped, and memory that both kernels only use atomically does not order them.

    %2 = gpu.launch_func async [%0] @m::@k ... args(%counter : memref<i32>)
    %3 = gpu.launch_func async [%1] @m::@k ... args(%counter : memref<i32>)    // not after %2
  becomes, until ``forget_concurrency``
    %2 = gpu.launch_func async [%0] @m::@k ... args(%counter : memref<i32>) {tuner.launch = array<i64: 0>}
    %3 = gpu.launch_func async [%1] @m::@k ... args(%counter : memref<i32>) {tuner.launch = array<i64: 1>}
"""

from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.effects.address_flow import is_token
from tuner.mlir.effects.buffer_accesses import has_device_work, is_device_work
from tuner.mlir.effects.kernel_effects import ATOMIC
from tuner.mlir.rewrite.walking import walk

NOTE = "tuner.launch"  # a launch's number in its block, then the numbers of those that it is ordered after
LAUNCH, WAIT = "gpu.launch_func", "gpu.wait"


def note_concurrency(module: ir.Module, function: Op) -> None:
    """Notes, in place, which launches of a function tokens leave unordered, if kernels have atomics."""
    if not walk(module, *ATOMIC):
        return
    for block in {launch.block for launch in walk(function, LAUNCH)}:
        _note(block)


def may_run_together(launch: Op, later: Op) -> bool:
    """Returns whether the program leaves two launches unordered, the first of which its text has before."""
    if NOTE not in launch.attributes or NOTE not in later.attributes or launch.block != later.block:
        return False
    number, *_ = ir.DenseI64ArrayAttr(launch.attributes[NOTE])
    return number not in list(ir.DenseI64ArrayAttr(later.attributes[NOTE]))[1:]


def forget_concurrency(function: Op) -> None:
    """Removes the notes of ``note_concurrency``, in place."""
    for launch in walk(function, LAUNCH):
        if NOTE in launch.attributes:
            del launch.attributes[NOTE]


def _note(block: Block) -> None:
    behind: dict[Value, frozenset[int]] = {}  # token -> launches that are done when it is
    waited: frozenset[int] = frozenset()  # launches that the host has waited for
    count = 0
    for op in (each.operation for each in block.operations):
        everything = frozenset(range(count))
        taken = [behind.get(each, everything) for each in op.operands if is_token(each)]
        before = waited.union(*taken)
        tokens = [each for each in op.results if is_token(each)]
        if op.name == LAUNCH and tokens:
            op.attributes[NOTE] = ir.DenseI64ArrayAttr.get([count, *sorted(before)])
            before |= {count}
            count += 1
        elif op.name == WAIT and not tokens:
            waited = before if taken else everything
        elif has_device_work(op) and not (is_device_work(op) and tokens):
            waited = everything
        behind |= dict.fromkeys(tokens, before)
