"""Decoders of memory accesses: loads, stores, atomics, fences.

A decoder consumes the modifiers of an opcode (``need``: required, ``take`` and ``has``: optional), makes
readers and writers of its operands, and returns a step: a function that runs the instruction for the active
lanes.
"""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import SCOPES, Operands, Reader, Step
from tuner.gpu.ptxsim.ptx.dtypes import Array, Indices, PtxType
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

Update = Callable[[Array, Array, Array], Array]  # (old, operand, second operand) -> new
SCOPES_OF_BLOCKS = ("cta", "cluster")
ORDERS = ("relaxed", "acquire", "release", "acq_rel")


def load(operands: Operands) -> Step:
    """Decodes PTX ``ld``: returns a function that loads memory into registers of the active lanes."""
    type_, count, space, is_strong = _of_vector(operands)
    address = operands.address(1)
    writers = [operands.writer(item, type_) for item in operands.items(0)]
    _check_count(operands, len(writers), count)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = resident.chosen(address(resident))
        loaded = resident.spaces.load(lanes, addresses, space, type_.bytes, count, is_strong=is_strong)
        columns = np.ascontiguousarray(loaded.T).view(type_.dtype)
        for write, values in zip(writers, columns, strict=True):
            if resident.is_full:
                write(resident, values)
                continue
            spread = np.zeros(len(resident.mask) * type_.elements, type_.dtype)
            spread.reshape(len(resident.mask), -1)[lanes] = values.reshape(len(lanes), -1)
            write(resident, spread)

    return step


def store(operands: Operands) -> Step:
    """Decodes PTX ``st``: returns a function that stores registers of the active lanes to memory."""
    type_, count, space, is_strong = _of_vector(operands)
    address = operands.address(0)
    readers = _sources(operands, 1, type_, count)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = resident.chosen(address(resident))
        resident.spaces.store(lanes, addresses, space, _columns(resident, readers), is_strong=is_strong)

    return step


def _of_vector(operands: Operands) -> tuple[PtxType, int, str, bool]:
    """Consumes the modifiers of ``ld`` or ``st``; returns (type, elements, state space, is strong access)."""
    modifiers = operands.modifiers
    type_ = modifiers.type()
    count = modifiers.vector()
    space = modifiers.space()
    is_strong = modifiers.take_memory_order()
    operands.need(2)
    return type_, count, space, is_strong


def _sources(operands: Operands, number: int, type_: PtxType, count: int) -> list[Reader]:
    """Returns the readers of the elements of vector operand ``number``, as unsigned integers.

    Raises UnsupportedInstruction if these are not ``count`` registers.
    """
    raw = PtxType(type_.name, type_.raw)
    readers = [operands.reader(item, raw) for item in operands.items(number)]
    _check_count(operands, len(readers), count)
    return readers


def _columns(resident: ResidentBlocks, readers: list[Reader]) -> Array:
    return np.stack([resident.chosen(read(resident)) for read in readers], axis=-1)


def _check_count(operands: Operands, registers: int, count: int) -> None:
    if registers != count:
        raise operands.unsupported(f"{registers} registers for a vector of {count}")


def fence_or_hint(operands: Operands) -> Step:
    """Decodes prefetch, fence and the like: returns a function without effect, as the memory is coherent.

    Only ``fence.proxy.async`` has an effect.
    """
    if operands.instruction.opcode.startswith("fence.proxy.async"):
        operands.modifiers.need_each("proxy")
        return proxy_fence(operands)
    operands.modifiers.need_each(*operands.instruction.parts[1:])
    return lambda _resident: None


ACCESSES: dict[str, Callable[[Operands], Step]] = {
    "ld": load,
    "st": store,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "membar", "fence", "nanosleep", "griddepcontrol"), fence_or_hint
    ),
}
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


def update(operands: Operands) -> Step:
    """Decodes PTX ``atom``, which writes old values to registers, and ``red``; lanes update in order."""
    modifiers = operands.modifiers
    returns = operands.instruction.parts[0] == "atom"
    type_ = modifiers.type()
    count = modifiers.vector()
    if modifiers.take("noftz") is None and type_.name in ("f16", "f16x2", "bf16", "bf16x2"):
        raise operands.unsupported("this instruction without .noftz")
    order = modifiers.take(*ORDERS) or "relaxed"
    if modifiers.take(*SCOPES) in SCOPES_OF_BLOCKS:
        order = "relaxed"  # between the blocks of different clusters
    space = modifiers.space()
    name = modifiers.need(UPDATES, "an operation")
    first = int(returns)
    operands.need(first + (3 if name == "cas" else 2))
    address = operands.address(first)
    sources = _sources(operands, first + 1, type_, count)
    seconds = _sources(operands, first + 2, type_, count) if name == "cas" else sources
    results = operands.names(0) if returns else ()

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = resident.chosen(address(resident))
        operand = _columns(resident, sources)
        second = _columns(resident, seconds)
        old = np.empty((len(lanes), count), type_.raw)
        updates = resident.spaces.updates(lanes, addresses, space, type_.bytes, count, order)
        for numbers, which, starts in updates:
            old[which] = _apply(UPDATES[name], type_, numbers, starts, operand[which], second[which])
        for index, result in enumerate(results):
            resident.scatter(result, lanes, old[:, index])

    return step


def _apply(
    function: Update, type_: PtxType, numbers: Array, starts: Indices, operand: Array, second: Array
) -> Array:
    """Updates ``numbers`` in lane order by an atomic's function; returns the value that each lane replaced.

    ``starts``: index of each lane's number; ``operand``, ``second``: operands of each lane.
    """
    old = np.empty_like(operand)
    columns = np.arange(operand.shape[1])
    # in rounds, each with at most one access per address
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rounds = np.arange(len(starts)) - np.repeat(begins, np.diff(np.r_[begins, len(starts)]))
    for number in range(int(rounds.max()) + 1):
        lanes = order[rounds == number]
        where = starts[lanes][:, None] + columns
        before = numbers[where]
        new = function(_typed(before, type_), _typed(operand[lanes], type_), _typed(second[lanes], type_))
        numbers[where] = np.ascontiguousarray(new.astype(type_.dtype)).view(type_.raw)
        old[lanes] = before
    return old


def _typed(bits: Array, type_: PtxType) -> Array:
    return np.ascontiguousarray(bits).view(type_.dtype)


ATOMICS: dict[str, Callable[[Operands], Step]] = {"atom": update, "red": update}


def proxy_fence(operands: Operands) -> Step:
    """Decodes ``fence.proxy.async``: makes the lanes' writes so far visible to bulk copies and wgmma."""
    operands.modifiers.need(("async",), "a proxy")
    operands.modifiers.has("global", "shared::cta", "shared::cluster")
    return lambda resident: resident.bulk.fence(resident.active())
