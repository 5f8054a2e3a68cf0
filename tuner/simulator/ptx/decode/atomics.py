"""Atomic read-modify-write: atom and red on shared and global memory, executed in lane order."""

from collections.abc import Callable, Iterator

import numpy as np

from tuner.simulator.ptx.decode.modifiers import SCOPES
from tuner.simulator.ptx.decode.operands import Operands, Reader, Step
from tuner.simulator.ptx.dtypes import Array, Indices, PtxType
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

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


DECODERS: dict[str, Callable[[Operands], Step]] = {"atom": update, "red": update}
