"""The transform op ``tuner.order_products``."""

from collections.abc import Iterable
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import element_of, value
from tuner.mlir.ir.reading import op_of, source_of, walk

STEPS_AHEAD = 1  # reads of a step come before the products of the step before


class OrderProductsOp(InPlaceOp, name="order_products"):
    """``tuner.order_products``: multiplies step of K by step of K, row by row, back and forth.

    An FFMA reads three registers. Registers of even number are one bank, those of odd number another. Each
    bank delivers one register per cycle, on average over about two FFMA. In a row of sums the element of A
    stays in the operand cache. Where a row ends, the element of B stays there. So an FFMA reads a sum and one
    element, which ptxas can put into different banks. Takes a function whose products are ``vector.fma`` in a
    loop, and makes them scalar ``math.fma``. What a step reads comes before the products of the step before.
    Copies, barriers and stores keep their order, and so do the products of each sum: results have equal bits.

        %next0 = vector.fma %left0, %row, %sum0 : vector<2xf32>
        %next1 = vector.fma %left1, %row, %sum1 : vector<2xf32>
        %stored = vector.extract %sums[0] : vector<2xf32> from vector<2x2xf32>
        vector.store %stored, %c[%i, %j] : memref<16x64xf32>, vector<2xf32>
      becomes
        %next00 = math.fma %a0, %b0, %sum00 : f32
        %next01 = math.fma %a0, %b1, %sum01 : f32
        %next11 = math.fma %a1, %b1, %sum11 : f32
        %next10 = math.fma %a1, %b0, %sum10 : f32
        %stored = vector.extract %sums[0] : vector<2xf32> from vector<2x2xf32>
        %eq = nvvm.read.ptx.sreg.lanemask.eq : i32
        %lt = nvvm.read.ptx.sreg.lanemask.lt : i32
        %none = arith.andi %eq, %lt : i32
        %nones = vector.broadcast %none : i32 to vector<2xi32>
        %bits = arith.bitcast %stored : vector<2xf32> to vector<2xi32>
        %copied = arith.xori %bits, %nones : vector<2xi32>
        %row0 = arith.bitcast %copied : vector<2xi32> to vector<2xf32>
        vector.store %row0, %c[%i, %j] : memref<16x64xf32>, vector<2xf32>

    The last lines: a store of a vector takes registers of consecutive numbers. Stored as they are, sums would
    be in those registers in the loop as well, each in the bank of the element of B that it is multiplied by.
    A lane's bit and the bits of the lanes below are never both set, which ptxas does not know, so the result
    of ``xor`` has registers of its own and equal bits.

    Run this op after every op that looks at products or at reads of shared memory. The handle (a func.func)
    stays valid, handles to products do not. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for loop in walk(function, "scf.for"):
            body = loop.regions[0].blocks[0]
            products = [op.operation for op in body.operations if op.operation.name == "vector.fma"]
            if products:
                _make_scalar(products)
                for run in _runs(body):
                    _order(run)
                _store_from_other_registers(function, loop)
        return None


def _make_scalar(products: list[Op]) -> None:
    """Replaces vector products by scalar ones, in place and in order."""
    elements = _Elements()
    for product in products:
        type_ = ir.VectorType(product.results[0].type)
        operands = list(map(elements.of, product.operands))
        with product.location, ir.InsertionPoint(product):
            scalars = [
                value("math.fma", type_.element_type, *factors) for factors in zip(*operands, strict=True)
            ]
            elements.add(product.results[0], scalars)
            if any(use.owner.operation.name != "vector.fma" for use in product.results[0].uses):
                product.results[0].replace_all_uses_with(value("vector.from_elements", type_, *scalars))
    for product in reversed(products):
        product.erase()


class _Elements:
    """The elements of vectors of one dimension as scalars, created once, after the vector."""

    def __init__(self) -> None:
        self._scalars: dict[Value, list[Value]] = {}

    def add(self, vector: Value, scalars: list[Value]) -> None:
        self._scalars[vector] = scalars

    def of(self, vector: Value) -> list[Value]:
        if vector not in self._scalars:
            self._scalars[vector] = self._created(vector)
        return self._scalars[vector]

    def _created(self, vector: Value) -> list[Value]:
        count = ir.VectorType(vector.type).shape[0]
        broadcast = op_of(vector, "vector.broadcast")
        if broadcast is not None and not isinstance(broadcast.operands[0].type, ir.VectorType):
            return [broadcast.operands[0]] * count
        if isinstance(vector.owner, ir.Block):
            point = ir.InsertionPoint.at_block_begin(vector.owner)
        else:
            point = ir.InsertionPoint.after(vector.owner)
        with ir.Location.unknown(), point:
            return [element_of(vector, number) for number in range(count)]


@dataclass(frozen=True)
class _Run:
    """Consecutive ops of a block that may change places, and the op after them, which may not."""

    ops: tuple[Op, ...]
    end: Op


def _runs(body: ir.Block) -> list[_Run]:
    """Returns the runs of a block; an op without results or with regions, such as a barrier, ends a run."""
    runs: list[_Run] = []
    ops: list[Op] = []
    for operation in body.operations:
        op = operation.operation
        if len(op.results) and not len(op.regions):
            ops.append(op)
            continue
        runs.append(_Run(tuple(ops), op))
        ops = []
    return runs


def _order(run: _Run) -> None:
    """Moves the ops of a run: products by steps and rows, each other op between two steps."""
    steps = _steps_of(run)
    between: list[list[Op]] = [[] for _ in range(len(steps) + 1)]  # the ops before each step, and at the end
    for op, slot in _slots(run, steps).items():
        between[slot].append(op)
    for others, products in zip(between, [*steps, []], strict=True):
        for op in (*others, *_back_and_forth(products)):
            op.move_before(run.end)


def _steps_of(run: _Run) -> list[list[Op]]:
    """Returns the products of a run by steps: in list i those that come i-th in the chain of their sums."""
    steps: list[list[Op]] = []
    number: dict[Value, int] = {}
    for op in run.ops:
        if op.name == "math.fma":
            step = number.get(op.operands[2], -1) + 1
            number[op.results[0]] = step
            if step == len(steps):
                steps.append([])
            steps[step].append(op)
    return steps


def _slots(run: _Run, steps: list[list[Op]]) -> dict[Op, int]:
    """Returns, for each op that is not a product, the step before whose products it is to come."""
    step_of = {op: index for index, products in enumerate(steps) for op in products}
    needed = _needed(run, step_of)
    slots: dict[Op, int] = {}
    reached = 0  # steps that have begun above in the run
    for op in run.ops:
        if op in step_of:
            reached = max(reached, step_of[op] + 1)
            continue
        earliest = 0
        for before in _producers(op):
            earliest = max(earliest, step_of[before] + 1 if before in step_of else slots.get(before, 0))
        wanted = reached  # an op that no product needs stays after the steps that have begun above it
        if op in needed:
            wanted = needed[op] - STEPS_AHEAD
        slots[op] = max(earliest, wanted)
    return slots


def _needed(run: _Run, step_of: dict[Op, int]) -> dict[Op, int]:
    """Returns, for each op on which products depend, the first step that does."""
    needed: dict[Op, int] = {}
    for op in reversed(run.ops):
        step = step_of.get(op, needed.get(op))
        if step is not None:
            for before in _producers(op):
                needed[before] = min(step, needed.get(before, step))
    return needed


def _producers(op: Op) -> Iterable[Op]:
    return (operand.owner.operation for operand in op.operands if not isinstance(operand.owner, ir.Block))


def _back_and_forth(products: list[Op]) -> list[Op]:
    """Returns the products of a step row by row, every other row from its end."""
    columns = {column: index for index, column in enumerate(dict.fromkeys(op.operands[1] for op in products))}
    rows: dict[Value, list[Op]] = {}
    for op in products:
        rows.setdefault(op.operands[0], []).append(op)
    ordered = []
    for index, row in enumerate(rows.values()):
        ordered += sorted(row, key=lambda op: columns[op.operands[1]], reverse=index % 2 == 1)
    return ordered


def _store_from_other_registers(function: Op, loop: Op) -> None:
    """Makes stores of ``function`` take copies of vectors of f32 that are results of ``loop``."""
    for store in walk(function, "vector.store"):
        sums = store.operands[0]
        type_ = ir.VectorType(sums.type)
        is_carried = source_of(sums, ("vector.extract",)).owner == loop
        if is_carried and isinstance(type_.element_type, ir.F32Type) and type_.shape[0] > 1:
            with store.location, ir.InsertionPoint(store):
                store.operands[0] = _copied(sums, type_)


def _copied(sums: Value, type_: ir.VectorType) -> Value:
    word = ir.IntegerType.get_signless(32)
    words = ir.VectorType.get(type_.shape, word)
    own, lower = (value(f"nvvm.read.ptx.sreg.lanemask.{which}", word) for which in ("eq", "lt"))
    zeros = value("vector.broadcast", words, value("arith.andi", word, own, lower))
    bits = value("arith.bitcast", words, sums)
    return value("arith.bitcast", type_, value("arith.xori", words, bits, zeros))
