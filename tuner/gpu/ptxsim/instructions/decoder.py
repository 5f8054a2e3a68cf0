"""Decodes a kernel: makes a Python function of each instruction, which the engine calls."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.gpu.ptxsim.instructions import (
    barriers,
    bulk_copies,
    calls,
    clusters,
    comparisons,
    conversions,
    floats,
    integers,
    matrices,
    memory,
    moves,
    warps,
    wgmma,
)
from tuner.gpu.ptxsim.instructions.control_flow import TERMINATORS, Guarded, Terminator, guard_of
from tuner.gpu.ptxsim.instructions.operands import Operands, Step
from tuner.gpu.ptxsim.ptx.control_flow_graph import ENDS, flow_of, is_one_of
from tuner.gpu.ptxsim.ptx.layout import Layout
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

DECODERS: dict[str, Callable[[Operands], Step]] = {
    **floats.DECODERS,
    **integers.DECODERS,
    **comparisons.DECODERS,
    **conversions.CONVERSIONS,
    **moves.MOVES,
    **memory.ACCESSES,
    **memory.ATOMICS,
    **calls.DECODERS,
    **clusters.CLUSTERS,
    **warps.DECODERS,
    **matrices.MMA,
    **bulk_copies.ASYNC_COPIES,
    **barriers.MBARRIERS,
    **wgmma.DECODERS,
    **matrices.WMMA,
}

ENDINGS = {**TERMINATORS, "mbarrier": barriers.wait_mbarrier}


@dataclass(frozen=True)
class Ending:
    """The last instruction of a basic block where it branches, waits or ends threads, with its guard."""

    instruction: Instruction
    guard: Guarded
    terminator: Terminator


@dataclass(frozen=True)
class DecodedBlock:
    """A decoded basic block: a function per instruction, its ending if any, the index of the next block."""

    steps: tuple[tuple[Instruction, Step], ...]
    ending: Ending | None
    following: int | None

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        last = () if self.ending is None else (self.ending.instruction,)
        return (*(instruction for instruction, _ in self.steps), *last)

    @property
    def length(self) -> int:
        return len(self.steps) + (self.ending is not None)


def decode(layout: Layout, symbols: dict[str, int]) -> tuple[DecodedBlock, ...]:
    """Returns the decoded basic blocks of a kernel, the entry first; unreachable blocks are left out.

    ``symbols``: addresses of variables and parameters in their state spaces. Raises UnsupportedInstruction
    for an instruction that is not simulated, SimulationError for an unknown label.
    """
    flow = flow_of(layout.kernel)
    decoded = []
    for block in flow.blocks:
        instructions = block.instructions
        ending = None
        if instructions and is_one_of(instructions[-1], ENDS):
            operands = Operands(instructions[-1], layout, symbols)
            terminator = ENDINGS[operands.instruction.parts[0]](operands, flow.labels)
            operands.modifiers.finish()
            ending = Ending(operands.instruction, guard_of(operands), terminator)
            instructions = instructions[:-1]
        steps = tuple(
            (instruction, _step(Operands(instruction, layout, symbols))) for instruction in instructions
        )
        decoded.append(DecodedBlock(steps, ending, block.following))
    return tuple(decoded)


def _step(operands: Operands) -> Step:
    name = operands.instruction.parts[0]
    if name not in DECODERS:
        raise operands.unsupported(f"the instruction {name}")
    step = DECODERS[name](operands)
    operands.modifiers.finish()
    guard, is_negated = guard_of(operands)
    if guard is None:
        return step

    def guarded(resident: ResidentBlocks) -> None:
        before = resident.mask
        was_full = resident.is_full
        holds = guard(resident)
        lanes = before & (~holds if is_negated else holds)
        if not lanes.any():
            return
        resident.set_mask(lanes)
        step(resident)
        resident.mask = before
        resident.is_full = was_full

    return guarded
