"""Loads, stores, copies and atomic updates of memrefs."""

from collections.abc import Callable

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.programs.interpret import accesses, flat_memory
from tuner.programs.interpret.buffer_view import BufferView
from tuner.programs.interpret.decode import floats, integers
from tuner.programs.interpret.element_types import INDEX, Array
from tuner.programs.interpret.frame import LaneFrame, Step, fault
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of

# In the order of arith's atomic kinds, which is alphabetical.
ATOMIC_KINDS: tuple[Callable[[Array, Array], Array], ...] = (
    floats.BINARY["addf"],
    integers.BINARY["addi"],
    integers.BINARY["andi"],
    lambda _, new: new,  # assign
    floats.BINARY["maximumf"],
    floats.BINARY["maxnumf"],
    integers.BINARY["maxsi"],
    integers.BINARY["maxui"],
    floats.BINARY["minimumf"],
    floats.BINARY["minnumf"],
    integers.BINARY["minsi"],
    integers.BINARY["minui"],
    floats.BINARY["mulf"],
    integers.BINARY["muli"],
    integers.BINARY["ori"],
    integers.BINARY["xori"],
)
COPY_LIMIT = 1 << 26  # number of elements over all lanes


def load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.load``: loads one element per lane.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    source, *indices = scope.slots(op.operands)
    target, kind, where = scope.slot(op.results[0]), scope.element(op, op.results[0].type), where_of(op)

    def step(frame: LaneFrame) -> None:
        values = frame.values
        places = [values[slot] for slot in indices]
        values[target] = accesses.load_element(frame, where, values[source], kind, places)

    return step


def store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.store``: stores one element per active lane.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    value, to, *indices = scope.slots(op.operands)
    kind, where = scope.element(op, op.operands[0].type), where_of(op)

    def step(frame: LaneFrame) -> None:
        values = frame.values
        places = [values[slot] for slot in indices]
        accesses.store_element(frame, where, values[to], kind, places, values[value])

    return step


def copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.copy``: each active lane copies the whole memref.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds, for sizes that
    differ between lanes, and if all lanes together copy more than 2**26 elements.
    """
    source, to = scope.slots(op.operands)
    kind, where = scope.element(op, op.operands[0].type), where_of(op)

    def step(frame: LaneFrame) -> None:
        one, other = frame.values[source], frame.values[to]
        sizes = extents(frame, where, one)
        places = np.indices(sizes, INDEX).reshape(len(sizes), -1)
        addresses = [view.at(tuple(places[:, None, None]), kind.size_bytes) for view in (one, other)]
        if not places.shape[1]:
            return
        everything = np.ones((1, 1, 1), bool)
        for offset in kind.offsets_bytes.ravel():
            numbers = accesses.load_where(frame, where, one, kind, addresses[0] + offset, everything)
            accesses.store_where(frame, where, other, kind, addresses[1] + offset, everything, numbers)

    return step


def extents(frame: LaneFrame, where: str, view: BufferView) -> tuple[int, ...]:
    """Returns a memref's sizes as integers, which must be the same in all active lanes.

    Raises CandidateError(RUN), naming the operation ``where``, if they differ, or if all lanes together have
    more than 2**26 elements.
    """
    sizes = []
    for size in view.sizes:
        found = np.unique(size[frame.active(size.shape)])
        if len(found) != 1:
            fault(where, f"found sizes {found[:4].tolist()} in different threads, allowed one")
        sizes.append(int(found[0]))
    lanes = np.prod(np.broadcast_shapes(view.address.shape, frame.mask.shape))
    if np.prod(sizes, dtype=object) * lanes > COPY_LIMIT:
        fault(where, f"found {sizes} elements in each thread, allowed {COPY_LIMIT} in all")
    return tuple(sizes)


def atomic(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.atomic_rmw``, whose result is the number before the update.

    Lanes with the same address update it one after another. A step is a function that executes ``op`` in all
    active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. The step raises
    CandidateError(RUN) for an access out of bounds.
    """
    value, to, *indices = scope.slots(op.operands)
    target, kind, where = scope.slot(op.results[0]), scope.element(op, op.operands[0].type), where_of(op)
    function = ATOMIC_KINDS[ir.IntegerAttr(op.attributes["kind"]).value]

    def step(frame: LaneFrame) -> None:
        values = frame.values
        places = [values[slot] for slot in indices]
        addresses = checked(frame, where, values[to], kind.size_bytes, places)
        values[target] = accesses.update(frame, kind, addresses, values[value], function)

    return step


def atomic_region(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.generic_atomic_rmw``: a region computes the new number from the old one.

    The result is the old number; lanes with the same address update it one after another. A step is a
    function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to
    frame slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    to, *indices = scope.slots(op.operands)
    target, kind, where = scope.slot(op.results[0]), scope.element(op, op.results[0].type), where_of(op)
    body = scope.body(op.regions[0])

    def step(frame: LaneFrame) -> None:
        outside, values = frame.mask, frame.values
        view, places = values[to], [values[slot] for slot in indices]
        addresses = np.broadcast_to(checked(frame, where, view, kind.size_bytes, places), frame.grid.shape)
        lanes = np.flatnonzero(np.broadcast_to(outside, frame.grid.shape))
        found = np.zeros(frame.grid.shape, kind.dtype)
        for turn in accesses.groups_without_conflicts(addresses.ravel()[lanes]):
            frame.mask = np.zeros(frame.grid.shape, bool)
            frame.mask.ravel()[lanes[turn]] = True
            found[frame.mask] = flat_memory.read(kind.dtype, addresses[frame.mask])
            (new,) = body.run(frame, [found.copy()])
            changed = np.broadcast_to(new, frame.grid.shape)[frame.mask]
            flat_memory.write(kind.dtype, addresses[frame.mask], changed)
        frame.mask, values[target] = outside, found

    return step


def checked(frame: LaneFrame, where: str, view: BufferView, item_bytes: int, indices: list[Array]) -> Array:
    """Returns the byte address of the element at ``indices`` in each lane, after checking it.

    Raises CandidateError(RUN), naming the operation ``where``, if an active lane's index is out of bounds, or
    its address is outside the buffer or no multiple of ``item_bytes``, the size of an element.
    """
    accesses.check_indices(frame, where, view, indices)
    addresses = view.at(indices, item_bytes)
    accesses.check_bytes(frame, where, view, addresses, item_bytes, item_bytes)
    return addresses


DECODERS: dict[str, Decode] = {
    "memref.load": load,
    "memref.store": store,
    "memref.copy": copy,
    "memref.atomic_rmw": atomic,
    "memref.generic_atomic_rmw": atomic_region,
}
