"""Control-flow graph of a kernel: its basic blocks in reverse post-order.

In this order a loop's body comes before the code after the loop, so that running the lowest basic block first
reconverges diverged lanes where their paths meet.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.defects import Defect, SimulationError
from tuner.simulator.ptx.dtypes import Bools
from tuner.simulator.ptx.instruction import Instruction, Label, PtxKernel, Symbol

BRANCHES = ("bra", "ret", "exit", "trap")
WAITS = ("mbarrier.try_wait", "mbarrier.test_wait")  # retried until success: alone in their basic block
ENDS = (*BRANCHES, "bar", "barrier", *WAITS)
NO_ENDS = ("bar.warp.", "barrier.cluster.arrive.")


@dataclass(frozen=True)
class BasicBlock:
    """A basic block: only the last instruction may branch, end threads or wait for warps or mbarriers."""

    instructions: tuple[Instruction, ...]
    following: int | None  # the fall-through block; None: none is reachable


@dataclass(frozen=True)
class Flow:
    """The control flow of a kernel: its basic blocks, the entry first, and the block of each label."""

    blocks: tuple[BasicBlock, ...]
    labels: dict[str, int]  # label -> block


def is_one_of(instruction: Instruction, names: tuple[str, ...]) -> bool:
    """Returns whether the opcode begins with one of ``names``, such as "bar" or "mbarrier.try_wait".

    bar.warp and barrier.cluster.arrive match no name, because they do not end a basic block.
    """
    opcode = f"{instruction.opcode}."
    if opcode.startswith(NO_ENDS):
        return False
    return any(opcode.startswith(f"{name}.") for name in names)


def flow_of(kernel: PtxKernel) -> Flow:
    """Returns the control-flow graph of a kernel: its basic blocks in reverse post-order.

    Unreachable blocks are left out. Raises SimulationError for a branch to an unknown label.
    """
    raw, labels = _cut(kernel)
    following = _targets(kernel, raw, labels)
    order = _reverse_post_order(following)
    number = {block: index for index, block in enumerate(order)}
    blocks = tuple(BasicBlock(tuple(raw[block]), number.get(block + 1)) for block in order)
    return Flow(blocks, {label: number[block] for label, block in labels.items() if block in number})


def _cut(kernel: PtxKernel) -> tuple[list[list[Instruction]], dict[str, int]]:
    """Returns the basic blocks in textual order, an empty block last, and a map from labels to blocks."""
    raw: list[list[Instruction]] = [[]]
    labels = {}
    for item in kernel.body:
        is_wait = isinstance(item, Instruction) and is_one_of(item, WAITS)
        if raw[-1] and (isinstance(item, Label) or is_wait):
            raw.append([])
        if isinstance(item, Label):
            labels[item.name] = len(raw) - 1
            continue
        raw[-1].append(item)
        if is_one_of(item, ENDS):
            raw.append([])
    if raw[-1]:
        raw.append([])
    return raw, labels


def _targets(kernel: PtxKernel, raw: list[list[Instruction]], labels: dict[str, int]) -> list[list[int]]:
    """Returns the indices of each basic block's successors."""
    found = []
    for number, block in enumerate(raw):
        last = block[-1] if block else None
        after = [number + 1] if number + 1 < len(raw) else []
        if last is None or not is_one_of(last, BRANCHES):
            found.append(after)
            continue
        targets = [_label(kernel, last, labels)] if is_one_of(last, ("bra",)) else []
        found.append(targets + (after if last.guard else []))
    return found


def _label(kernel: PtxKernel, branch: Instruction, labels: dict[str, int]) -> int:
    target = branch.operands[0] if branch.operands else None
    if isinstance(target, Symbol) and target.name in labels:
        return labels[target.name]
    reason = f"line {branch.line}: {branch.text}: found no such label in {kernel.name}"
    raise SimulationError(Defect.SYNTAX, branch.line, reason)


def _reverse_post_order(following: list[list[int]]) -> list[int]:
    """Returns the reachable blocks in reverse post-order; the search visits loop exits before loop bodies."""
    reach = _reachable(following)
    seen = {0}
    post: list[int] = []

    def choices(block: int) -> Iterator[int]:
        """Yields successors outside of the block's loop first: reversed, they come after the loop's body."""
        return iter(sorted(following[block], key=lambda target: (bool(reach[target, block]), -target)))

    stack = [(0, choices(0))]
    while stack:
        block, rest = stack[-1]
        target = next((target for target in rest if target not in seen), None)
        if target is None:
            post.append(block)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, choices(target)))
    return post[::-1]


def _reachable(following: list[list[int]]) -> Bools:
    """Returns the transitive closure of the successors [from, to], by Warshall's algorithm (1962)."""
    count = len(following)
    reach = np.zeros((count, count), bool)
    for block, targets in enumerate(following):
        reach[block, targets] = True
    for middle in range(count):
        reach |= reach[:, middle : middle + 1] & reach[middle]
    return reach
