"""Decoders of memory accesses: loads and stores of every state space, atomics, prefetches and fences."""

from collections.abc import Callable, Iterator

import numpy as np

from tuner.simulator.instructions.async_copies import proxy_fence
from tuner.simulator.instructions.operands import SCOPES, Operands, Reader, Step
from tuner.simulator.ptx.dtypes import Array, Indices, PtxType
from tuner.simulator.state.resident_blocks import ResidentBlocks

# ------------------------------------------------------------------------------
# Loads and stores (ld, st) of every state space, width and vector length; prefetches and fences.


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


ACCESSES: dict[str, Callable[[Operands], Step]] = {
    "ld": load,
    "st": store,
    **dict.fromkeys(("prefetch", "prefetchu", "membar", "fence", "nanosleep", "griddepcontrol"), nothing),
}


Update = Callable[[Array, Array, Array], Array]  # (old, operand, second operand) -> new
UPDATES: dict[str, Update] = {
    "add": lambda old, b, _c: old + b,
    "min": lambda old, b, _c: np.minimum(old, b),
    "max": lambda old, b, _c: np.maximum(old, b),
    "and": lambda old, b, _c: old & b,
    "or": lambda old, b, _c: old | b,
    "xor": lambda old, b, _c: old ^ b,
    "exch": lambda _old, b, _c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "inc": lambda old, b, _c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, b, _c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
}
ORDERS = ("relaxed", "acquire", "release", "acq_rel")


def update(operands: Operands) -> Step:
    """Decodes PTX ``atom`` and ``red``: returns a function that updates shared or global memory atomically.

    The active lanes update memory in lane order. ``atom`` also writes the old values to registers. Raises
    UnsupportedInstruction for a form that is not simulated.
    """
    modifiers = operands.modifiers
    returns = operands.instruction.parts[0] == "atom"
    type_, count = modifiers.type(), modifiers.vector()
    if modifiers.take("noftz") is None and type_.name in ("f16", "f16x2", "bf16", "bf16x2"):
        raise operands.unsupported("it without .noftz")
    modifiers.has(*ORDERS)
    modifiers.has(*SCOPES)
    space = modifiers.space()
    name = modifiers.need(UPDATES, "an operation")
    first = int(returns)
    operands.need(first + (3 if name == "cas" else 2))
    address = operands.address(first)
    sources = _sources(operands, first + 1, type_, count)
    seconds = _sources(operands, first + 2, type_, count) if name == "cas" else sources
    results = operands.names(0) if returns else ()
    return _step(UPDATES[name], type_, space, address, sources, seconds, results)


def _sources(operands: Operands, number: int, type_: PtxType, count: int) -> list[Reader]:
    raw = PtxType(type_.name, type_.raw)
    readers = [operands.reader(item, raw) for item in operands.items(number)]
    if len(readers) != count:
        raise operands.unsupported(f"{len(readers)} registers for a vector of {count}")
    return readers


def _step(
    function: Update,
    type_: PtxType,
    space: str,
    address: Reader,
    sources: list[Reader],
    seconds: list[Reader],
    results: tuple[str, ...],
) -> Step:
    count = len(sources)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        operand = np.stack([resident.chosen(read(resident)) for read in sources], axis=-1)
        second = np.stack([resident.chosen(read(resident)) for read in seconds], axis=-1)
        old = np.empty((len(lanes), count), type_.raw)
        updates = resident.spaces.updates(
            lanes, resident.chosen(address(resident)), space, type_.bytes, count
        )
        for numbers, which, starts in updates:
            old[which] = _apply(function, type_, numbers, starts, operand[which], second[which])
        for number, name in enumerate(results):
            resident.scatter(name, lanes, old[:, number])

    return step


def _apply(
    function: Update, type_: PtxType, numbers: Array, starts: Indices, operand: Array, second: Array
) -> Array:
    """Updates integers in lane order; returns each lane's old value."""
    old = np.empty_like(operand)
    columns = np.arange(operand.shape[1])
    for lanes in _iterations(starts):
        where = starts[lanes][:, None] + columns
        before = numbers[where]
        new = function(_typed(before, type_), _typed(operand[lanes], type_), _typed(second[lanes], type_))
        numbers[where] = np.ascontiguousarray(new.astype(type_.dtype)).view(type_.raw)
        old[lanes] = before
    return old


def _typed(bits: Array, type_: PtxType) -> Array:
    return np.ascontiguousarray(bits).view(type_.dtype)


def _iterations(starts: Indices) -> Iterator[Indices]:
    """Yields the accesses of lanes in rounds: at most one access per address in each round, in lane order."""
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    begins = np.flatnonzero(is_first)
    iteration = np.arange(len(starts)) - np.repeat(begins, np.diff(np.r_[begins, len(starts)]))
    for number in range(int(iteration.max()) + 1):
        yield order[iteration == number]


ATOMICS: dict[str, Callable[[Operands], Step]] = {"atom": update, "red": update}
