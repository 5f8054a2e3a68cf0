"""Executes host programs with two memories: every misuse of one is an error, what was never written is NaN.

Kernels are ``gpu.func`` bodies, executed thread by thread. Covers the operations of ``host_programs``, and
those that passes make of them. ``host_nodes`` reads a module into what is executed here.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HOST, DEVICE, PINNED = "host", "device", "pinned"
# Which code may use which memory.
USABLE = {HOST: (HOST, PINNED), DEVICE: (DEVICE,)}


class MisuseError(Exception):
    """A program did something that no program may do with its memory."""


@dataclass
class Block:
    """A block of memory."""

    numbers: Any  # flat array
    memory: str
    is_ours: bool = True  # the program allocated it, so somebody must free it
    is_freed: bool = False


@dataclass(frozen=True)
class View:
    """A memref: elements in a block of memory."""

    block: Block
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, code: str) -> Any:
        """Returns the elements as an array that shares the memory, for code on the host or the device."""
        if self.block.is_freed:
            raise MisuseError("use after free")
        if self.block.memory not in USABLE[code]:
            raise MisuseError(f"{code} code uses {self.block.memory} memory")
        numbers = self.block.numbers[self.offset :]
        steps = tuple(stride * numbers.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(numbers, self.sizes, steps)

    def flat(self) -> Any:
        """Returns the elements of a row-major memref in either memory."""
        pairs = zip(self.sizes, self.strides, row_major(self.sizes), strict=True)
        if self.offset or any(size != 1 and stride != step for size, stride, step in pairs):
            raise MisuseError("gpu.memcpy of a memref that is not row-major")
        return self.array(DEVICE if self.block.memory == DEVICE else HOST).reshape(-1)


def _known(numbers: tuple[int | None, ...]) -> tuple[int, ...]:
    assert None not in numbers, "an allocation has a layout"
    return tuple(number for number in numbers if number is not None)


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


@dataclass(frozen=True)
class Shape:
    """A memref's type; None where it does not tell."""

    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    offset: int | None
    dtype: Any
    is_row_major: bool


@dataclass(frozen=True)
class Node:
    """An operation, read once."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    kinds: tuple[Any, ...]  # of the results: Shape of a memref
    attributes: dict[str, Any]
    bodies: tuple["Body", ...]


@dataclass(frozen=True)
class Body:
    """The only block of a region."""

    arguments: tuple[int, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Function:
    """A function or kernel, and how many values it has."""

    body: Body
    count: int


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind."""

    results: tuple[Any, ...]  # arrays and numbers
    arguments: tuple[Any, ...]  # arrays, as they are afterwards
    globals: dict[str, Any]
    leaks: dict[str, int]  # memory -> blocks that are neither freed nor returned
    copies: int  # gpu.memcpy executed
    launches: int


@dataclass
class Interpreter:
    """A module that can be run; globals keep what runs write."""

    functions: dict[str, Function]
    globals: dict[str, View]
    kernels_use: str  # memory: HOST before the pass, DEVICE after it
    blocks: list[Block] = field(default_factory=list)
    copies: int = 0
    launches: int = 0

    def run(self, *arguments: Any, memories: tuple[str, ...] = ()) -> Outcome:
        """Calls @main with arrays and numbers; ``memories`` says where the first arrays are."""
        sides = itertools.chain(memories, itertools.repeat(HOST))
        values = [self._argument(each, memory) for each, memory in zip(arguments, sides, strict=False)]
        results = self.call("main", values, HOST)
        kept = {id(result.block) for result in results if isinstance(result, View)}
        lost = [block.memory for block in self.blocks if not block.is_freed and id(block) not in kept]
        return Outcome(
            tuple(each.array(HOST).copy() if isinstance(each, View) else each for each in results),
            tuple(each.array(each.block.memory).copy() for each in values if isinstance(each, View)),
            {name: view.block.numbers.copy() for name, view in self.globals.items()},
            {memory: lost.count(memory) for memory in sorted(set(lost))},
            self.copies,
            self.launches,
        )

    def call(
        self, name: str, arguments: list[Any], code: str, ids: dict[str, int] | None = None
    ) -> list[Any]:
        """Runs a function, or one thread of a kernel, and returns its results."""
        function = self.functions[name]
        frame = Frame(self, [None] * function.count, code, ids or {})
        return frame.run(function.body, arguments)

    def allocate(self, shape: Shape, sizes: list[int], memory: str, is_ours: bool = True) -> View:
        """Returns new memory full of NaN."""
        open_sizes = iter(sizes)
        known = tuple(next(open_sizes) if size is None else size for size in shape.sizes)
        strides = row_major(known) if shape.is_row_major else _known(shape.strides)
        (offset,) = _known((shape.offset,))
        reach = sum((size - 1) * stride for size, stride in zip(known, strides, strict=True))
        count = 0 if 0 in known else offset + reach + 1
        numbers = np.full(count, np.nan if np.issubdtype(shape.dtype, np.floating) else -1, shape.dtype)
        block = Block(numbers, memory, is_ours)
        if is_ours:
            self.blocks.append(block)
        return View(block, offset, known, strides)

    def _argument(self, argument: Any, memory: str) -> Any:
        if not isinstance(argument, np.ndarray):
            return np.float32(argument) if isinstance(argument, float) else argument
        base = argument if argument.base is None else argument.base
        offset = (argument.ctypes.data - base.ctypes.data) // argument.itemsize
        strides = tuple(step // argument.itemsize for step in argument.strides)
        return View(Block(base.reshape(-1).copy(), memory, False), offset, argument.shape, strides)


@dataclass
class Frame:
    """One activation: the values of a function, and what code it is."""

    program: Interpreter
    values: list[Any]
    code: str  # HOST or DEVICE: what memory it may use
    ids: dict[str, int]  # of a thread: "thread_id x"

    def run(self, body: Body, arguments: list[Any]) -> list[Any]:
        """Runs a block and returns what its terminator hands on."""
        for number, argument in zip(body.arguments, arguments, strict=True):
            self.values[number] = argument
        for node in body.nodes[:-1]:
            results = OPERATIONS[node.name](self, node, *[self.values[number] for number in node.operands])
            for number, result in zip(node.results, results, strict=True):
                self.values[number] = result
        return [self.values[number] for number in body.nodes[-1].operands]


Operation = Callable[..., Any]  # (frame, node, *operands) -> results


def _pure(compute: Callable[..., Any]) -> Operation:
    return lambda frame, node, *operands: [compute(*operands)]


def _alloc(frame: Frame, node: Node, *sizes: int) -> list[Any]:
    if node.name == "gpu.alloc":
        memory = PINNED if "hostShared" in node.attributes else DEVICE
    else:
        memory = HOST
    return [frame.program.allocate(node.kinds[0], list(sizes), memory, node.name != "memref.alloca")]


def _free(frame: Frame, node: Node, view: View) -> list[Any]:
    allowed = (HOST,) if node.name == "memref.dealloc" else (DEVICE, PINNED)
    block = view.block
    if block.is_freed or block.memory not in allowed or not block.is_ours:
        state = "freed before" if block.is_freed else "found" if block.is_ours else "not allocated here"
        raise MisuseError(f"{node.name} of {block.memory} memory: {state}")
    block.is_freed = True
    return []


def _load(frame: Frame, node: Node, view: View, *indices: int) -> list[Any]:
    return [view.array(frame.code)[indices]]


def _store(frame: Frame, node: Node, number: Any, view: View, *indices: int) -> list[Any]:
    view.array(frame.code)[indices] = number
    return []


def _copy(frame: Frame, node: Node, source: View, target: View) -> list[Any]:
    target.array(frame.code)[...] = source.array(frame.code)
    return []


def _device_copy(frame: Frame, node: Node, target: View, source: View) -> list[Any]:
    if target.sizes != source.sizes:
        raise MisuseError(f"gpu.memcpy of {source.sizes} to {target.sizes}")
    target.flat()[...] = source.flat()
    frame.program.copies += 1
    return []


def _fill(frame: Frame, node: Node, number: Any, view: View) -> list[Any]:
    view.array(frame.code)[...] = number
    return []


def _add(frame: Frame, node: Node, one: View, other: View, target: View) -> list[Any]:
    target.array(frame.code)[...] = one.array(frame.code) + other.array(frame.code)
    return []


def _subview(frame: Frame, node: Node, view: View, *numbers: int) -> list[Any]:
    rest = iter(numbers)
    offsets, sizes, strides = (
        [next(rest) if each is None else each for each in node.attributes[name]]
        for name in ("static_offsets", "static_sizes", "static_strides")
    )
    offset = view.offset + sum(first * step for first, step in zip(offsets, view.strides, strict=True))
    steps = tuple(each * step for each, step in zip(strides, view.strides, strict=True))
    return [View(view.block, offset, tuple(sizes), steps)]


def _reinterpret(frame: Frame, node: Node, view: View, *numbers: int) -> list[Any]:
    rest = iter(numbers)
    (offset,), sizes, strides = (
        [next(rest) if each is None else each for each in node.attributes[name]]
        for name in ("static_offsets", "static_sizes", "static_strides")
    )
    return [View(view.block, offset, tuple(sizes), tuple(strides))]


def _metadata(frame: Frame, node: Node, view: View) -> list[Any]:
    return [View(view.block, 0, (), ()), view.offset, *view.sizes, *view.strides]


def _less(frame: Frame, node: Node, left: Any, right: Any) -> list[Any]:
    assert node.attributes["predicate"] == {"arith.cmpi": 2, "arith.cmpf": 4}[node.name], "slt or olt"
    return [left < right]


def _for(frame: Frame, node: Node, start: int, stop: int, step: int, *carried: Any) -> list[Any]:
    values = list(carried)
    for number in range(start, stop, step):
        values = frame.run(node.bodies[0], [number, *values])
    return values


def _parallel(frame: Frame, node: Node, *bounds: int) -> list[Any]:
    rank = len(bounds) // 3
    axes = [range(*bounds[axis::rank]) for axis in range(rank)]
    for indices in itertools.product(*axes):
        frame.run(node.bodies[0], list(indices))
    return []


def _while(frame: Frame, node: Node, *carried: Any) -> list[Any]:
    values = list(carried)
    while True:
        goes_on, *values = frame.run(node.bodies[0], values)
        if not goes_on:
            return values
        values = frame.run(node.bodies[1], values)


def _if(frame: Frame, node: Node, condition: bool) -> list[Any]:
    body = node.bodies[0] if condition else node.bodies[1]
    return frame.run(body, []) if body.nodes else []


def _call(frame: Frame, node: Node, *arguments: Any) -> list[Any]:
    return frame.program.call(node.attributes["callee"], list(arguments), HOST)


def _launch(frame: Frame, node: Node, *operands: Any) -> list[Any]:
    grid, block, arguments = operands[0:3], operands[3:6], list(operands[6:])
    frame.program.launches += 1
    for number in np.ndindex(*grid, *block):
        ids = {f"{what} {axis}": number[at] for what, at, axis in IDS}
        frame.program.call(node.attributes["kernel"], arguments, frame.program.kernels_use, ids)
    return []


IDS = tuple(
    (what, first + axis, "xyz"[axis])
    for what, first in (("block_id", 0), ("thread_id", 3))
    for axis in range(3)
)


def _thread_index(frame: Frame, node: Node) -> list[Any]:
    return [frame.ids[f"{node.name[4:]} {node.attributes['dimension']}"]]


OPERATIONS: dict[str, Operation] = {
    "arith.constant": lambda frame, node: [node.attributes["value"]],
    "arith.addi": _pure(lambda left, right: left + right),
    "arith.subi": _pure(lambda left, right: left - right),
    "arith.muli": _pure(lambda left, right: left * right),
    "arith.maxsi": _pure(max),
    **dict.fromkeys(("arith.cmpi", "arith.cmpf"), _less),
    "arith.addf": _pure(lambda left, right: np.float32(left + right)),
    "arith.mulf": _pure(lambda left, right: np.float32(left * right)),
    "arith.select": _pure(lambda condition, one, other: one if condition else other),
    **dict.fromkeys(("memref.alloc", "memref.alloca", "gpu.alloc"), _alloc),
    **dict.fromkeys(("memref.dealloc", "gpu.dealloc"), _free),
    "memref.load": _load,
    "memref.store": _store,
    "memref.copy": _copy,
    "memref.cast": _pure(lambda view: view),
    "memref.dim": _pure(lambda view, axis: view.sizes[axis]),
    "memref.subview": _subview,
    "memref.reinterpret_cast": _reinterpret,
    "memref.extract_strided_metadata": _metadata,
    "memref.get_global": lambda frame, node: [frame.program.globals[node.attributes["name"]]],
    "linalg.fill": _fill,
    "linalg.add": _add,
    "scf.for": _for,
    "scf.parallel": _parallel,
    "scf.while": _while,
    "scf.if": _if,
    "func.call": _call,
    "gpu.launch_func": _launch,
    "gpu.memcpy": _device_copy,
    **dict.fromkeys(("gpu.block_id", "gpu.thread_id"), _thread_index),
}
