"""Loads and stores (ld, st) of every state space, width and vector length; prefetches and fences."""

from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.bulk import proxy_fence
from tuner.simulator.ptx.decode.operands import Operands, Step
from tuner.simulator.ptx.dtypes import PtxType
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks


def load(operands: Operands) -> Step:
    """Decodes PTX ``ld``: returns a function that loads memory into registers of the active lanes.

    All state spaces are simulated, parameters and constants included. Raises UnsupportedInstruction for
    modifiers or operands that are not simulated.
    """
    modifiers = operands.modifiers
    type_, count, space = modifiers.type(), modifiers.vector(), modifiers.space()
    is_strong = modifiers.take_memory_order()
    operands.need(2)
    address = operands.address(1)
    writers = [operands.writer(item, type_) for item in operands.items(0)]
    _check_count(operands, len(writers), count)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        found = resident.spaces.load(
            lanes, resident.chosen(address(resident)), space, type_.bytes, count, is_strong=is_strong
        )
        columns = np.ascontiguousarray(found.T).view(type_.dtype)
        for write, values in zip(writers, columns, strict=True):
            if resident.is_full:
                write(resident, values)
                continue
            spread = np.zeros(len(resident.mask) * type_.elements, type_.dtype)
            spread.reshape(len(resident.mask), -1)[lanes] = values.reshape(len(lanes), -1)
            write(resident, spread)

    return step


def store(operands: Operands) -> Step:
    """Decodes PTX ``st``: returns a function that stores registers of the active lanes to memory.

    The function raises Fault for a store to a parameter or a constant. Raises UnsupportedInstruction for
    modifiers or operands that are not simulated.
    """
    modifiers = operands.modifiers
    type_, count, space = modifiers.type(), modifiers.vector(), modifiers.space()
    is_strong = modifiers.take_memory_order()
    operands.need(2)
    address = operands.address(0)
    raw = PtxType(type_.name, type_.raw)
    readers = [operands.reader(item, raw) for item in operands.items(1)]
    _check_count(operands, len(readers), count)

    def step(resident: ResidentBlocks) -> None:
        values = np.stack([resident.chosen(read(resident)) for read in readers], axis=-1)
        resident.spaces.store(
            resident.active(), resident.chosen(address(resident)), space, values, is_strong=is_strong
        )

    return step


def _check_count(operands: Operands, found: int, count: int) -> None:
    if found != count:
        raise operands.unsupported(f"{found} registers for a vector of {count}")


def nothing(operands: Operands) -> Step:
    """Decodes prefetch, prefetchu, membar, fence, nanosleep, griddepcontrol: returns an empty function.

    The simulated memory is coherent, and race detection ignores these fences. The exception is
    ``fence.proxy.async``, which has an effect: see ``proxy_fence``.
    """
    if operands.instruction.opcode.startswith("fence.proxy.async"):
        operands.modifiers.need(("proxy",), "it")
        return proxy_fence(operands)
    left = operands.modifiers
    while left.take(*operands.instruction.parts[1:]):
        pass
    return lambda _resident: None


DECODERS: dict[str, Callable[[Operands], Step]] = {
    "ld": load,
    "st": store,
    **dict.fromkeys(("prefetch", "prefetchu", "membar", "fence", "nanosleep", "griddepcontrol"), nothing),
}
