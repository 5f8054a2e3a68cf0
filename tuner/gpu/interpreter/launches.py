"""Steps of host code that works with a GPU: launches run at once, and device memory is host memory."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from tuner.gpu.interpreter import kernels, memory_ops
from tuner.gpu.interpreter.decoding import (
    BlockMemory,
    Decode,
    FunctionScope,
    LaneFrame,
    Step,
    decode_function,
    where_of,
)
from tuner.gpu.interpreter.lanes import INDEX, LaneGrid, Sizes3, uniform
from tuner.gpu.interpreter.memory import store_element
from tuner.gpu.interpreter.tensors import require_one_thread, whole, wholes
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.launches import ARGUMENTS, BLOCK, CLUSTER, GRID, SHARED_BYTES, operands
from tuner.mlir.ir.reading import name_of, ops_in, unsupported

ASYNC_TYPE = "!gpu.async.token"
INDICES = 12  # block and thread numbers, grid and block sizes, each x, y, z: arguments of gpu.launch
Sizes = tuple[tuple[int, ...], tuple[int, ...]]  # slots of the sizes of the grid and of a block


def launch(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.launch``: runs all blocks, in batches whose threads run in lockstep."""
    sizes = _sizes(op, scope)
    shared = scope.slots(operands(op, SHARED_BYTES))
    block = op.regions[0].blocks[0]
    allocators = [kernels.attribution(op, argument.type) for argument in list(block.arguments)[INDICES:]]
    body = scope.body(op.regions[0], is_kernel=True)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        require_one_thread(frame, where)
        for lanes in _batches(frame, sizes):
            inner = LaneFrame(frame.values, lanes, _memory(frame, shared), frame.write)
            extents = [np.full((1, 1), size, INDEX) for size in (*lanes.grid, *lanes.block)]
            numbers = [*map(lanes.block_id, range(3)), *map(lanes.thread_id, range(3))]
            body.run(inner, [*numbers, *extents, *(allocate(inner) for allocate in allocators)])

    return step


def launch_function(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.launch_func`` of a kernel in a gpu.module of the same text.

    Raises CandidateError(COMPILE) where there is no such module, or its kernels are not text.
    """
    sizes = _sizes(op, scope)
    shared = scope.slots(operands(op, SHARED_BYTES))
    module_name, name = map(str, ir.SymbolRefAttr(op.attributes["kernel"]).value)
    holder = scope.symbols.get(module_name)
    if holder is None or holder.name != "gpu.module":
        raise unsupported(op, f"@{module_name}, which has no kernels as text", "a gpu.module")
    ops = ops_in(holder.regions[0].blocks[0])
    symbols = {name_of(symbol): symbol for symbol in ops if "sym_name" in symbol.attributes}
    kernel = symbols[name]
    function = decode_function(kernel, kernels.DECODERS, symbols)
    arguments = scope.slots(operands(op, ARGUMENTS))
    where = where_of(op)
    own = list(kernel.regions[0].blocks[0].arguments)[len(arguments) :]
    allocators = [kernels.attribution(kernel, argument.type) for argument in own]
    tokens = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        require_one_thread(frame, where)
        passed = frame.take(arguments)
        for lanes in _batches(frame, sizes):
            memory = _memory(frame, shared, is_own_module=True)
            inner = LaneFrame([None] * function.slots, lanes, memory, frame.write)
            function.body.run(inner, [*passed, *(allocate(inner) for allocate in allocators)])
        _set_tokens(frame, tokens)

    return step


def _sizes(op: Op, scope: FunctionScope) -> Sizes:
    """Returns the frame slots with the sizes of a launch's grid, and those with the sizes of a block.

    Raises CandidateError(COMPILE) for a launch of clusters.
    """
    if any(_of_segments(op, CLUSTER)):
        raise unsupported(op, "clusters", "blocks")
    return scope.slots(_of_segments(op, GRID)), scope.slots(_of_segments(op, BLOCK))


def _of_segments(op: Op, segments: slice) -> list[Value]:
    numbers = range(segments.start, segments.stop)
    return list(chain.from_iterable(operands(op, number) for number in numbers))


def _batches(frame: LaneFrame, sizes: Sizes) -> Iterator[LaneGrid]:
    grid, block = (_three(list(map(whole, frame.take(slots)))) for slots in sizes)
    at_once = kernels.LaneLaunch(grid, block).blocks_at_once
    numbers = np.arange(math.prod(grid) if math.prod(block) else 0, dtype=INDEX)
    for first in range(0, len(numbers), at_once):
        yield LaneGrid(grid, block, numbers[first : first + at_once])


def _three(sizes: Sequence[int]) -> Sizes3:
    x, y, z = sizes
    return x, y, z


def _memory(frame: LaneFrame, shared: Sequence[int], *, is_own_module: bool = False) -> BlockMemory:
    """Returns the memory of a batch of blocks: shared memory is new, globals of host code are the host's.

    ``is_own_module``: the kernel is in a gpu.module, whose globals are new, too.
    """
    size = whole(frame.values[shared[0]]) if shared else kernels.DEFAULT_SHARED_BYTES
    known = {} if is_own_module else dict(frame.memory.made)
    return BlockMemory(size, frame.memory.limit, known)


def _set_tokens(frame: LaneFrame, tokens: Sequence[int]) -> None:
    for token in tokens:
        frame.values[token] = np.zeros((1, 1), INDEX)  # work is done: a token orders nothing


def allocation(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.alloc``, which allocates host memory."""
    type_ = op.results[0].type
    element = scope.element(op, type_)
    where = where_of(op)
    dynamic = scope.slots(operands(op, 1))
    target, *tokens = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        sizes = memory_ops.sizes_of(type_.shape, frame.take(dynamic))
        frame.values[target] = memory_ops.new_buffer(frame, where, type_, element, sizes)
        _set_tokens(frame, tokens)

    return step


def copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.memcpy``, which copies when it is reached: nothing is asynchronous here."""
    to, source = (operand for operand in op.operands if str(operand.type) != ASYNC_TYPE)
    copied = memory_ops.copy_between(op, scope.element(op, to.type), scope.slot(source), scope.slot(to))
    tokens = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        copied(frame)
        _set_tokens(frame, tokens)

    return step


def fill(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.memset``: the same number in all elements."""
    to, value = (operand for operand in op.operands if str(operand.type) != ASYNC_TYPE)
    element = scope.element(op, to.type)
    where = where_of(op)
    target = scope.slot(to)
    number = scope.slot(value)
    tokens = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        view = frame.values[target]
        for indices in np.ndindex(*wholes(view.sizes)):
            store_element(frame, where, view, element, list(map(uniform, indices)), frame.values[number])
        _set_tokens(frame, tokens)

    return step


def nothing(op: Op, scope: FunctionScope) -> Step:
    """Returns a step that does nothing, for an operation that orders work, frees or registers memory."""
    tokens = scope.slots(op.results)
    return lambda frame: _set_tokens(frame, tokens)


DECODERS: dict[str, Decode] = {
    "gpu.launch": launch,
    "gpu.launch_func": launch_function,
    "gpu.alloc": allocation,
    "gpu.memcpy": copy,
    "gpu.memset": fill,
    **dict.fromkeys(("gpu.wait", "gpu.dealloc", "gpu.host_register", "gpu.host_unregister"), nothing),
}
