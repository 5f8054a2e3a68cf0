"""The basic blocks of a kernel in reverse post-order, and which follow which.

A loop's body comes before the code after the loop, so that running the lowest basic block first reconverges
diverged lanes where their paths meet.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction, Label, PtxKernel, Symbol

BRANCHES = ("bra", "ret", "exit", "trap")
WAITS = ("mbarrier.try_wait", "mbarrier.test_wait")  # retried until success: alone in their basic block
ENDS = (*BRANCHES, "bar", "barrier", *WAITS)
NO_ENDS = ("bar.warp.", "barrier.cluster.arrive.")  # begin as some of ENDS, but end no basic block


@dataclass(frozen=True)
class BasicBlock:
    """A basic block: only the last instruction may branch, end threads or wait for warps or mbarriers."""

    instructions: tuple[Instruction, ...]
    following: int | None  # the fall-through block; None: none is reachable


@dataclass(frozen=True)
class Flow:
    """The control flow of a kernel: its reachable basic blocks, the entry first, and their labels."""

    blocks: tuple[BasicBlock, ...]
    labels: dict[str, int]  # label -> block


def is_one_of(instruction: Instruction, names: tuple[str, ...]) -> bool:
    """Returns whether an opcode begins with one of ``names``, such as "bar"; False for NO_ENDS."""
    opcode = f"{instruction.opcode}."
    if opcode.startswith(NO_ENDS):
        return False
    return any(opcode.startswith(f"{name}.") for name in names)


def flow_of(kernel: PtxKernel) -> Flow:
    """Returns the reachable basic blocks of a kernel in reverse post-order.

    Raises SimulationError for a branch to an unknown label.
    """
    raw: list[list[Instruction]] = [[]]  # basic blocks in textual order, an empty block last
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
    order = _reverse_post_order(_targets(kernel, raw, labels))
    number = {block: index for index, block in enumerate(order)}
    blocks = tuple(BasicBlock(tuple(raw[block]), number.get(block + 1)) for block in order)
    reachable = {}
    for label, block in labels.items():
        if block in number:
            reachable[label] = number[block]
    return Flow(blocks, reachable)


def _targets(kernel: PtxKernel, raw: list[list[Instruction]], labels: dict[str, int]) -> list[list[int]]:
    following = []
    for index, block in enumerate(raw):
        last = block[-1] if block else None
        after = []
        if index + 1 < len(raw):
            after.append(index + 1)
        if last is not None and is_one_of(last, BRANCHES):
            if not last.guard:  # a branch with a guard may go on to the next block
                after = []
            if is_one_of(last, ("bra",)):
                label = last.operands[0] if last.operands else None
                if not isinstance(label, Symbol) or label.name not in labels:
                    reason = f"line {last.line}: {last.text}: found no such label in {kernel.name}"
                    raise SimulationError(Defect.SYNTAX, last.line, reason)
                after = [labels[label.name], *after]
        following.append(after)
    return following


def _reverse_post_order(following: list[list[int]]) -> list[int]:
    """Returns the reachable blocks in reverse post-order; the search visits loop exits before loop bodies."""
    reach = np.zeros((len(following), len(following)), bool)  # [from, to]
    for block, targets in enumerate(following):
        reach[block, targets] = True
    for middle in range(len(following)):  # transitive closure: Warshall's algorithm (1962)
        reach |= reach[:, middle : middle + 1] & reach[middle]
    seen = {0}
    post: list[int] = []

    def choices(block: int) -> Iterator[int]:
        # those outside of the block's loop first: reversed, they come after the loop's body
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
