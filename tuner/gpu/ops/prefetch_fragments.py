"""The transform op ``tuner.prefetch_fragments``."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import create, recreated, value
from tuner.mlir.ir.reading import ops_in, types_of

PRODUCTS = ("nvgpu.mma.sync", "vector.fma")
WAIT = "nvgpu.device_async_wait"
BARRIER = "gpu.barrier"
LOADS = ("memref.load", "vector.load")
# Ops that are interleaved with products where reads are spread, each after its address computation.
MEMORY = ("nvgpu.ldmatrix", *LOADS, "nvgpu.device_async_copy")
MANY_PRODUCTS = 32  # per step, as of a warp tile of 64x64; they hide the copies of every block tile

Build = Callable[[], None]


class PrefetchFragmentsOp(InPlaceOp, name="prefetch_fragments"):
    """``tuner.prefetch_fragments``: reads fragments of a step of K before the previous step's products.

    Takes the loop that ``nvgpu.pipeline_shared_memory_copies`` made: it waits for a tile, reads fragments
    from it and multiplies them, on tensor cores or by ``vector.fma``. Gives a rotated loop (software
    pipelining of the reads): the wait, the barrier and the first reads of the next tile come before the last
    products of the current tile. All reads of a tile still precede the barrier after which it is overwritten,
    so no additional buffer is needed. The last iteration reads a tile that is not multiplied. Copies are
    issued with the reads of the second step, or of the third where steps have few products.

        %sums:3 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero, %token = %first, ...) -> ... {
          nvgpu.device_async_wait %token {numGroups = 0 : i32}
          gpu.barrier
          %x = nvgpu.ldmatrix %a[%stage, %row, %c0] {numTiles = 4 : i32, transpose = false} : ...
          %y = nvgpu.ldmatrix %b[%stage, %row, %c0] {numTiles = 2 : i32, transpose = false} : ...
          %next = nvgpu.mma.sync(%x, %y, %sum) {mmaShape = [16, 8, 16]} : ...
      becomes
        nvgpu.device_async_wait %first {numGroups = 0 : i32}
        gpu.barrier
        %x0 = nvgpu.ldmatrix %a[%c0, %row, %c0] {numTiles = 4 : i32, transpose = false} : ...
        %y0 = nvgpu.ldmatrix %b[%c0, %row, %c0] {numTiles = 2 : i32, transpose = false} : ...
        %sums:5 = scf.for %k = %c0 to %c64 step %c16 iter_args(..., %x = %x0, %y = %y0) -> ... {
          %group = nvgpu.device_async_create_group %copy
          nvgpu.device_async_wait %group {numGroups = 0 : i32}
          gpu.barrier
          %x1 = nvgpu.ldmatrix %a[%other, %row, %c0] {numTiles = 4 : i32, transpose = false} : ...
          %y1 = nvgpu.ldmatrix %b[%other, %row, %c0] {numTiles = 2 : i32, transpose = false} : ...
          %next = nvgpu.mma.sync(%x, %y, %sum) {mmaShape = [16, 8, 16]} : ...

    Attribute ``spread`` (i64, default 0): 1 interleaves reads and copies evenly with the products, 0 puts
    reads and copies first; interleaved reads take fewer registers. Run this op after every
    op that changes addresses of shared memory. The handle (an scf.for) is consumed: rotated loops are new
    ops. Other loops stay, and so does a loop with other side effects or regions, such as a copy that
    remained a plain store. Never fails.
    """

    consumes_handle = True  # the loop is replaced

    def change(self, function: Op) -> Refusal | None:
        body = _body_of(function)
        if body is not None and all(map(body.is_known, body.ops)):
            is_spread = attribute(self, "spread", 0) == 1
            loop = body.loop
            low, _, stride, *initial = loop.operands
            with loop.location, ir.InsertionPoint(loop):
                first = _Iteration(body, dict(zip(body.arguments, [low, *initial], strict=True)))
                first.build(body.wait)
                first.build(body.barrier)
                starts = [first.value(read.results[0]) for read in body.first_reads]
                results = types_of((*loop.results, *starts))
                new = recreated(loop, results, [*loop.operands, *starts])
            types = types_of((*body.arguments, *starts))
            inside = new.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
            with loop.location, ir.InsertionPoint(inside):
                _fill(body, list(inside.arguments), stride, is_spread)
            for old, result in zip(loop.results, new.results, strict=False):
                old.replace_all_uses_with(result)
            loop.erase()
        return None


@dataclass(frozen=True)
class _Body:
    loop: Op
    ops: tuple[Op, ...]  # without scf.yield
    wait: Op
    barrier: Op
    steps: tuple[tuple[Op, ...], ...]  # consecutive products at the same position in their chains of sums

    @cached_property
    def arguments(self) -> list[Value]:
        return list(self.loop.regions[0].blocks[0].arguments)

    @cached_property
    def yielded(self) -> list[Value]:
        return list(list(self.loop.regions[0].blocks[0].operations)[-1].operands)

    @cached_property
    def first_reads(self) -> list[Op]:
        return _Iteration(self, {}).reads(_fragments(self.steps[0]))

    def is_known(self, op: Op) -> bool:
        """Returns whether an op is the wait, the barrier, or has results and no regions: it can move."""
        return (len(op.results) > 0 and len(op.regions) == 0) or op in (self.wait, self.barrier)

    @property
    def copies(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.name.startswith("nvgpu.device_async") and op != self.wait)


def _body_of(loop: Op) -> _Body | None:
    ops = tuple(ops_in(loop.regions[0].blocks[0]))[:-1]
    waits, barriers = ([op for op in ops if op.name == name] for name in (WAIT, BARRIER))
    products = [op for op in ops if op.name in PRODUCTS]
    number: dict[Value, int] = {}
    for product in products:
        # a product's position in its chain: one after the product that made its sums
        number[product.results[0]] = number.get(product.operands[2], -1) + 1
    steps = tuple(tuple(step) for _, step in groupby(products, lambda product: number[product.results[0]]))
    if not steps or len(waits) != 1 or len(barriers) != 1:
        return None
    return _Body(loop, ops, waits[0], barriers[0], steps)


def _fragments(products: Iterable[Op]) -> list[Value]:
    return [fragment for product in products for fragment in list(product.operands)[:2]]


class _Iteration:
    """One iteration of a loop, rebuilt on demand: an op is cloned when needed, after its operands."""

    def __init__(self, body: _Body, known: dict[Value, Value]) -> None:
        self._here = set(body.ops)
        self._values = known  # value of the old loop -> value of the new code

    def value(self, old: Value) -> Value:
        if (
            old not in self._values
            and not isinstance(old.owner, ir.Block)
            and old.owner.operation in self._here
        ):
            self.build(old.owner.operation)
        return self._values.get(old, old)

    def build(self, op: Op) -> None:
        if any(result in self._values for result in op.results):
            return
        operands = list(map(self.value, op.operands))
        clone = op.clone().operation
        for index, operand in enumerate(operands):
            clone.operands[index] = operand
        self._values.update(zip(op.results, clone.results, strict=True))

    def reads(self, fragments: Iterable[Value]) -> list[Op]:
        """Returns the memory accesses that fragments depend on and that are not cloned yet."""
        needed: dict[Op, None] = {}
        for fragment in fragments:
            self._collect(fragment, needed)
        return [op for op in needed if op.name in MEMORY]

    def _collect(self, old: Value, needed: dict[Op, None]) -> None:
        if old in self._values or isinstance(old.owner, ir.Block):
            return
        op = old.owner.operation
        if op not in self._here or op in needed:
            return
        for operand in op.operands:
            self._collect(operand, needed)
        needed[op] = None


def _fill(body: _Body, arguments: list[Value], stride: Value, is_spread: bool) -> None:
    first_reads = [read.results[0] for read in body.first_reads]
    now = _Iteration(body, dict(zip((*body.arguments, *first_reads), arguments, strict=True)))
    *early, last = body.steps
    # A first step of few products hides other instructions, not copies; ptxas moves no read before a copy.
    copying = int(len(early) > 1 and len(early[0]) < MANY_PRODUCTS)
    for index, products in enumerate(early):
        fragments = _fragments(body.steps[index + 1])
        ahead = now.reads(fragments) + (list(body.copies) if index == copying else [])
        _build(products, [_builder(now, op) for op in ahead], now, is_spread)
    if not early:  # the group of copies must be committed before a wait counts groups
        _build((), [_builder(now, op) for op in body.copies], now, False)
    after = _next(body, now, arguments[0], stride)
    after.build(body.wait)
    after.build(body.barrier)
    _build(last, [_builder(after, op) for op in body.first_reads], now, is_spread)
    if any(read.name in LOADS for read in body.first_reads):
        _keep_before_the_end()
    create("scf.yield", [], [*map(now.value, body.yielded), *map(after.value, first_reads)])


def _keep_before_the_end() -> None:
    """Creates an empty inline asm that LLVM treats as a store: else LLVM moves these reads to the start."""
    create(
        "llvm.inline_asm",
        asm_string=ir.StringAttr.get(""),
        constraints=ir.StringAttr.get("~{memory}"),
        has_side_effects=ir.UnitAttr.get(),
    )


def _next(body: _Body, now: _Iteration, counter: Value, stride: Value) -> _Iteration:
    """Returns the iteration after ``now``; does not map sums, which are vectors and which no read needs."""
    later = value("arith.addi", counter.type, counter, stride)
    known = {body.arguments[0]: later}
    for argument, yielded in zip(body.arguments[1:], body.yielded, strict=True):
        if not isinstance(argument.type, ir.VectorType):
            known[argument] = now.value(yielded)
    return _Iteration(body, known)


def _builder(iteration: _Iteration, op: Op) -> Build:
    return lambda: iteration.build(op)


def _build(products: tuple[Op, ...], ahead: list[Build], now: _Iteration, is_spread: bool) -> None:
    """Creates the products, with the ops of ``ahead`` before them or evenly interleaved."""
    share = len(products) // (len(ahead) + 1) if is_spread else 0
    for index, product in enumerate(products if share else ()):
        now.build(product)
        if (index + 1) % share == 0 and ahead:
            ahead.pop(0)()
    for read in ahead:
        read()
    for product in products:
        now.build(product)
