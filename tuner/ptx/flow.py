"""A kernel's body as basic blocks in reverse post order.

In that order a loop's body stands before what follows the loop, so that running the lowest block first brings
diverged lanes together again where their ways meet.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.ptx.defects import Defect, SimulationError
from tuner.ptx.dtypes import Bools
from tuner.ptx.instruction import Instruction, Kernel, Label, Symbol

BRANCHES = ("bra", "ret", "exit", "trap")
WAITS = ("mbarrier.try_wait", "mbarrier.test_wait")  # tried again until they succeed: alone in their block
ENDS = (*BRANCHES, "bar", "barrier", *WAITS)


@dataclass(frozen=True)
class BasicBlock:
    """Instructions that run one after the other; only the last one may branch, wait or end."""

    instructions: tuple[Instruction, ...]
    following: int | None  # the block that runs next where the last instruction does not say otherwise


@dataclass(frozen=True)
class Flow:
    """The blocks of a kernel, the first one where it begins."""

    blocks: tuple[BasicBlock, ...]
    labels: dict[str, int]  # label -> block


def is_one_of(instruction: Instruction, names: tuple[str, ...]) -> bool:
    """Tells whether an opcode begins with one of these words; bar.warp is no bar."""
    opcode = f"{instruction.opcode}."
    if opcode.startswith(("bar.warp.", "barrier.cluster.")):
        return False
    return any(opcode.startswith(f"{name}.") for name in names)


def flow_of(kernel: Kernel) -> Flow:
    """Cuts a kernel's body into blocks. Raises SimulationError for a branch to nowhere."""
    raw, labels = _cut(kernel)
    following = _targets(kernel, raw, labels)
    order = _reverse_post_order(following)
    number = {block: place for place, block in enumerate(order)}
    blocks = tuple(BasicBlock(tuple(raw[block]), number.get(block + 1)) for block in order)
    return Flow(blocks, {label: number[block] for label, block in labels.items() if block in number})


def _cut(kernel: Kernel) -> tuple[list[list[Instruction]], dict[str, int]]:
    """Returns the blocks in the order of the text; the last one is empty: the end of the body."""
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


def _targets(kernel: Kernel, raw: list[list[Instruction]], labels: dict[str, int]) -> list[list[int]]:
    """Returns the blocks that can run after each block."""
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


def _label(kernel: Kernel, branch: Instruction, labels: dict[str, int]) -> int:
    target = branch.operands[0] if branch.operands else None
    if isinstance(target, Symbol) and target.name in labels:
        return labels[target.name]
    reason = f"line {branch.line}: {branch.text}: found no such label in {kernel.name}"
    raise SimulationError(Defect.SYNTAX, branch.line, reason)


def _reverse_post_order(following: list[list[int]]) -> list[int]:
    """Returns the blocks that can be reached, every block after what leads to it but for loops."""
    reach = _reachable(following)
    seen = {0}
    post: list[int] = []

    def choices(block: int) -> Iterator[int]:
        """Yields what leads out of a loop first: it ends up behind the loop's body."""
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
    """Returns which blocks can be reached from which [from, to]."""
    count = len(following)
    reach = np.zeros((count, count), bool)
    for block, targets in enumerate(following):
        reach[block, targets] = True
    for middle in range(count):
        reach |= reach[:, middle : middle + 1] & reach[middle]
    return reach
