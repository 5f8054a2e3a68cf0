"""Steps of blocks and subgroups: indices, barriers, collective operations, shuffles, printing.

A function named like an operation decodes it: it takes the operation and returns the step that the
interpreter runs for all lanes at once. ``by_subgroup`` gives values the shape (blocks, subgroups, 32).
"""

import re
from collections.abc import Callable

import numpy as np

from tuner.gpu.interpreter import memory
from tuner.gpu.interpreter.arithmetic import Combine, combination
from tuner.gpu.interpreter.decoding import (
    AbstractBody,
    Decode,
    FunctionScope,
    LaneFrame,
    Step,
    fault,
    where_of,
)
from tuner.gpu.interpreter.lanes import (
    BOOL,
    INDEX,
    SUBGROUP,
    Array,
    LaneGrid,
    signed,
    uniform,
    unsigned,
    with_trailing_axes,
)
from tuner.mlir.bindings import Op, ir
from tuner.mlir.effects.launches import axis_of
from tuner.mlir.ir.reading import unsupported

INDICES: dict[str, Callable[[LaneGrid, int], Array]] = {  # from the axis; 0 for those without one
    "gpu.thread_id": LaneGrid.thread_id,
    "gpu.block_id": LaneGrid.block_id,
    "gpu.block_dim": lambda grid, axis: uniform(grid.block[axis]),
    "gpu.grid_dim": lambda grid, axis: uniform(grid.grid[axis]),
    "gpu.global_id": lambda grid, axis: grid.block_id(axis) * grid.block[axis] + grid.thread_id(axis),
    "gpu.lane_id": lambda grid, _: grid.linear_thread % SUBGROUP,
    "gpu.subgroup_id": lambda grid, _: grid.linear_thread // SUBGROUP,
    "gpu.num_subgroups": lambda grid, _: uniform(-(-grid.threads // SUBGROUP)),
    "gpu.subgroup_size": lambda _grid, _axis: uniform(SUBGROUP),
}
SPECIFIER = re.compile(r"%(?P<flags>[-+ #0]*[0-9]*(?:\.[0-9]+)?)(?:hh|h|ll|l|z|j|t|L)?(?P<kind>[a-zA-Z%])")
INTEGERS = "dic"
UNSIGNED = "uoxX"
FLOATS = "fFeEgG"
LANES = np.arange(SUBGROUP)


def index(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for an operation of INDICES: an index of each lane, or a size that lanes share."""
    axis = axis_of(op) if "dimension" in op.attributes else 0
    make = INDICES[op.name]
    (target,) = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        frame.values[target] = make(frame.grid, axis).astype(INDEX, copy=False)

    return step


def printf(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.printf``: passes one text per active lane to the frame's ``write``.

    Raises CandidateError(COMPILE) for a format that does not fit the arguments.
    """
    text = ir.StringAttr(op.attributes["format"]).value
    kinds = [match["kind"] for match in SPECIFIER.finditer(text) if match["kind"] != "%"]
    sources = scope.slots(op.operands)
    known = INTEGERS + UNSIGNED + FLOATS
    if len(kinds) != len(sources) or not set(kinds) <= set(known):
        raise unsupported(
            op, f"format {text!r} with {len(sources)} arguments", f"one of %{', %'.join(known)} for each"
        )
    template = SPECIFIER.sub(lambda match: "%" + match["flags"] + match["kind"].replace("u", "d"), text)

    def step(frame: LaneFrame) -> None:
        columns = []
        for letter, slot in zip(kinds, sources, strict=True):
            values = np.broadcast_to(frame.values[slot], frame.grid.shape)
            if letter not in FLOATS:
                values = unsigned(values) if letter in UNSIGNED else signed(values)
            columns.append(values)
        for block, thread in np.argwhere(np.broadcast_to(frame.mask, frame.grid.shape)):
            frame.write(template % tuple(column[block, thread].item() for column in columns))

    return step


def by_subgroup(grid: LaneGrid, values: Array) -> Array:
    """Reshapes lane values (blocks, threads, ...) to (blocks, subgroups, 32, ...), padding with zeros."""
    rest = values.shape[2:]
    whole = np.broadcast_to(values, (*grid.shape, *rest))
    missing = -grid.threads % SUBGROUP
    if missing:
        blank = np.zeros((grid.count, missing, *rest), values.dtype)
        whole = np.concatenate([whole, blank], axis=1)
    return whole.reshape(grid.count, -1, SUBGROUP, *rest)


def by_lane(grid: LaneGrid, values: Array) -> Array:
    """Reshapes values (blocks, subgroups, 32, ...) to (blocks, threads, ...) and removes the padding."""
    return values.reshape(grid.count, -1, *values.shape[3:])[:, : grid.threads]


def active_by_subgroup(frame: LaneFrame) -> Array:
    """Returns whether each lane is active, of shape (blocks, subgroups, 32); False for padding."""
    return by_subgroup(frame.grid, frame.mask)


def require_whole_blocks(frame: LaneFrame, where: str) -> None:
    """Raises CandidateError(RUN) if some but not all threads of a block that have not returned are active."""
    mask, live = (np.broadcast_to(lanes, frame.grid.shape) for lanes in (frame.mask, frame.live))
    waits = np.any(mask, 1)
    away = np.any(live & ~mask, 1)
    _require(frame, where, waits & away, live & ~mask, "the threads of a block")


def require_whole_subgroups(frame: LaneFrame, where: str, width: int = SUBGROUP) -> None:
    """Raises CandidateError(RUN) if a subgroup has active lanes, but not all of its first ``width`` lanes.

    Lanes that have returned are not counted.
    """
    grid = frame.grid
    there = by_subgroup(grid, frame.live) & (np.arange(SUBGROUP) < width)
    away = there & ~active_by_subgroup(frame)
    waits = np.any(active_by_subgroup(frame), -1) & np.any(away, -1)
    missing = by_lane(grid, away & waits[..., None])
    _require(frame, where, np.any(missing, 1), missing, "the lanes of a subgroup")


def _require(frame: LaneFrame, where: str, bad: Array, missing: Array, who: str) -> None:
    if bad.any():
        block = int(np.argmax(bad))
        thread = int(np.argmax(missing[block]))
        lane = frame.grid.describe(block, thread)
        fault(where, f"found some of {who} only, not {lane}, allowed all of them or none")


def fold(values: Array, valid: Array, axis: int, combine: Callable[[Array, Array], Array]) -> Array:
    """Reduces values along ``axis``, kept with size 1, pairwise; omits values where ``valid`` is False.

    ``valid`` may lack the last axes of ``values``; where no value is valid the result is unspecified.
    """
    while values.shape[axis] > 1:
        half = -(-values.shape[axis] // 2)
        (left, right), (is_left, is_right) = (_halves(array, axis, half) for array in (values, valid))
        extra = values.ndim - valid.ndim
        both = with_trailing_axes(is_left & is_right, extra)
        first = with_trailing_axes(is_left, extra)
        values = np.where(both, combine(left, right), np.where(first, left, right))
        valid = is_left | is_right
    return values


def _halves(values: Array, axis: int, half: int) -> tuple[Array, Array]:
    first, second = np.split(values, [half], axis)
    missing = half - second.shape[axis]
    if missing:  # zeros, which are not valid
        second = np.concatenate([second, np.zeros_like(np.take(first, range(missing), axis))], axis)
    return first, second


def barrier(op: Op, _: FunctionScope) -> Step:
    """Returns the step for ``gpu.barrier``: only a check, since all lanes run in lockstep."""
    where = where_of(op)
    return lambda frame: require_whole_blocks(frame, where)


def all_reduce(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.all_reduce`` over a block's threads, by an operation's name or a region."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    where = where_of(op)
    body = scope.body(op.regions[0]) if op.regions[0].blocks else None
    combine = combination(op, scope, str(op.attributes["op"])) if body is None else None

    def step(frame: LaneFrame) -> None:
        require_whole_blocks(frame, where)
        values = np.broadcast_to(frame.values[source], frame.grid.shape)
        valid = np.broadcast_to(frame.mask, frame.grid.shape)
        frame.values[target] = fold(values, valid, 1, combine or _by_region(frame, body))

    return step


def _by_region(frame: LaneFrame, body: AbstractBody | None) -> Combine:
    """Returns a region with two arguments as a binary function of arrays; with no element masked."""
    assert body is not None

    def combine(left: Array, right: Array) -> Array:
        outside = frame.mask
        frame.mask = np.ones((1, 1), bool)
        try:
            (combined,) = body.run(frame, [left, right])
        finally:
            frame.mask = outside
        return np.asarray(combined)

    return combine


def subgroup_reduce(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_reduce`` over active lanes of each subgroup, or each cluster.

    Raises CandidateError(COMPILE) for a kind of reduction that the interpreter lacks, and for clusters that
    do not divide a subgroup.
    """
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    where = where_of(op)
    combine = combination(op, scope, str(op.attributes["op"]))
    size, stride = (
        int(ir.IntegerAttr(op.attributes[name]).value) if name in op.attributes else default
        for name, default in (("cluster_size", 0), ("cluster_stride", 1))
    )
    size = size or SUBGROUP // stride
    is_uniform = "uniform" in op.attributes
    if SUBGROUP % (size * stride):
        raise unsupported(op, f"clusters of {size} lanes, {stride} apart", f"parts of {SUBGROUP}")

    def step(frame: LaneFrame) -> None:
        if is_uniform:
            require_whole_subgroups(frame, where)
        values = by_subgroup(frame.grid, frame.values[source])
        rest = values.shape[3:]
        clusters = (*values.shape[:2], SUBGROUP // (size * stride), size, stride)
        valid = active_by_subgroup(frame).reshape(clusters)
        folded = fold(values.reshape(*clusters, *rest), valid, 3, combine)
        spread = np.broadcast_to(folded, (*clusters, *rest)).reshape(values.shape)
        frame.values[target] = by_lane(frame.grid, spread)

    return step


def ballot(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.ballot``: bit i is 1 if lane i is active and its predicate is true."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    dtype = scope.element(op, op.results[0].type).dtype

    def step(frame: LaneFrame) -> None:
        votes = by_subgroup(frame.grid, frame.values[source]) & active_by_subgroup(frame)
        bits = (votes.astype(np.uint64) << np.arange(SUBGROUP, dtype=np.uint64)).sum(-1, keepdims=True)
        spread = np.broadcast_to(bits.astype(np.uint64), votes.shape)
        frame.values[target] = by_lane(frame.grid, spread).astype(dtype)

    return step


COLLECTIVES: dict[str, Decode] = {
    "gpu.barrier": barrier,
    "gpu.all_reduce": all_reduce,
    "gpu.subgroup_reduce": subgroup_reduce,
    "gpu.ballot": ballot,
}
# Mode -> the number of the lane to read, from the lane's number and the offset.
SOURCES: dict[str, Callable[[Array, Array], Array]] = {
    "xor": lambda lane, offset: lane ^ offset,
    "up": lambda lane, offset: lane - offset,
    "down": lambda lane, offset: lane + offset,
    "idx": lambda _, offset: offset,
}


def shuffle(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.shuffle``: each lane reads a value of another lane of its subgroup.

    The second result is False, and the value poison, if the source lane, or the lane itself, is not among the
    first ``width`` lanes. The value is poison, too, where the source lane has returned. Raises
    CandidateError(COMPILE) for a mode that ``SOURCES`` does not list.
    """
    mode = str(op.attributes["mode"]).removeprefix("#gpu<shuffle_mode ").removesuffix(">")
    if mode not in SOURCES:
        raise unsupported(op, f"mode {mode}", ", ".join(SOURCES))
    (value, offset, width), targets = scope.slots(op.operands), scope.slots(op.results)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        widths = frame.values[width]
        distinct = np.unique(widths[frame.active(widths.shape)])
        if len(distinct) != 1 or not 0 < distinct[0] <= SUBGROUP:
            fault(where, f"found width {distinct[:4].tolist()}, allowed one of 1 to {SUBGROUP}")
        lanes = int(distinct[0])
        distance = by_subgroup(frame.grid, frame.values[offset]).astype(np.int64)
        source = SOURCES[mode](LANES, distance)
        is_valid = (source >= 0) & (source < lanes) & (lanes > LANES)
        require_whole_subgroups(frame, where, lanes)
        _put(frame, targets, frame.values[value], source, is_valid)

    return step


def rotate(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.rotate``: each lane reads the value of the lane ``offset`` further.

    The lanes wrap around after ``width``; lanes from ``width`` on get poison, and False as second result.
    """
    value = scope.slot(op.operands[0])
    where = where_of(op)
    targets = scope.slots(op.results)
    offset, width = (ir.IntegerAttr(op.attributes[name]).value for name in ("offset", "width"))
    source = ((LANES + offset) & (width - 1)) + (LANES & ~(width - 1))

    def step(frame: LaneFrame) -> None:
        shape = active_by_subgroup(frame).shape
        sources, is_valid = (np.broadcast_to(lanes, shape) for lanes in (source, width > LANES))
        require_whole_subgroups(frame, where, width)
        _put(frame, targets, frame.values[value], sources, is_valid)

    return step


def broadcast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_broadcast``, from a lane by index or the first active lane.

    The result is poison where the lane does not exist or is not active.
    """
    source, *lane = scope.slots(op.operands)
    (target,) = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        if lane:
            number = by_subgroup(frame.grid, frame.values[lane[0]]).astype(np.int64)
        else:
            active = active_by_subgroup(frame)
            number = np.broadcast_to(active.argmax(-1)[..., None], active.shape)
        is_valid = (number >= 0) & (number < SUBGROUP)
        _put(frame, (target,), frame.values[source], number, is_valid)

    return step


def _put(frame: LaneFrame, targets: tuple[int, ...], values: Array, source: Array, is_valid: Array) -> None:
    # the value of lane ``source``, poison where it is not valid or inactive; then whether it is valid
    lanes = np.where(is_valid, source, 0)
    is_there = is_valid & np.take_along_axis(active_by_subgroup(frame), lanes, 2)
    grouped = by_subgroup(frame.grid, values)
    axes = grouped.ndim - 3
    read = np.take_along_axis(grouped, with_trailing_axes(np.where(is_there, source, 0), axes), 2)
    taken = np.where(with_trailing_axes(is_there, axes), read, poison(values.dtype))
    for target, result in zip(targets, (taken, is_valid), strict=False):
        frame.values[target] = by_lane(frame.grid, result)


def poison(dtype: np.dtype[np.generic]) -> Array:
    """Returns an array of size 1 with the value that stands for poison: NaN, -1 for integers, true for i1."""
    return np.full(dtype.itemsize, 1 if dtype == BOOL else memory.POISON, np.uint8).view(dtype)[0:1]


SHUFFLES: dict[str, Decode] = {
    "gpu.shuffle": shuffle,
    "gpu.rotate": rotate,
    "gpu.subgroup_broadcast": broadcast,
}

DECODERS: dict[str, Decode] = {
    **dict.fromkeys(INDICES, index),
    **COLLECTIVES,
    **SHUFFLES,
    "gpu.printf": printf,
}
