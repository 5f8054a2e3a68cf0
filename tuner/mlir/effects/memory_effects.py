"""Which buffers kernels and host ops read, write, or overwrite whole: side-effect (mod/ref) summaries.

Outlined kernels that are not lowered yet have one summary per ``gpu.func``: for each argument, the
union of the effects of its uses and of the uses of its views (interprocedural side-effect analysis, Cooper
and Kennedy 1988, for calls that nest no deeper than one). Effects of single ops are in ``op_effects.py``.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.aliases import VIEWS, described, is_buffer, may_be_unknown_pointer
from tuner.mlir.effects.launches import ARGUMENTS, BLOCK, GRID, axis_of, operands
from tuner.mlir.effects.op_effects import (
    ANYTHING,
    NO_MEMORY_EFFECT,
    NOTHING,
    UNBOUNDED,
    Effect,
    effect_on_operand,
)
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import (
    arguments_in,
    constant_of,
    function_type,
    name_of,
    op_of,
    users_of,
    uses_of,
    walk,
    walk_where,
)

ATOMIC = ("memref.atomic_rmw", "memref.generic_atomic_rmw")
POINTERS = ("!llvm.ptr", "!llvm.ptr<1>")  # to memory that kernels share
CAST = "builtin.unrealized_conversion_cast"  # of a tensor map to its address
# Ops that allocate, forward or free memory, and neither read nor write it.
NO_READ_OR_WRITE = (
    VIEWS
    | NO_MEMORY_EFFECT
    | {"arith.select", "memref.alloc", "memref.alloca", "memref.get_global", "memref.dealloc", "gpu.dealloc"}
)
SHARED_MEMORY = frozenset({"gpu.alloc", "gpu.dealloc"})  # of memory that host and GPU share (host_shared)
# Ops after which this analysis cannot follow the address of a buffer.
ESCAPES = frozenset(
    {
        *("memref.extract_aligned_pointer_as_index", "builtin.unrealized_conversion_cast"),
        *("memref.realloc", "bufferization.to_tensor"),
    }
)
CONSTANT = ""  # the term without an id
LESS = (2, 6)  # predicates of arith.cmpi: slt, ult
Linear = dict[str, int]  # a linear form: "thread_id.0" or the like, or CONSTANT -> its coefficient


class EffectInstance(NamedTuple):
    """A memref and what an op may do to the memref's elements: MLIR's ``MemoryEffects::EffectInstance``."""

    value: Value
    effect: Effect


class KernelEffects:
    """What each ``gpu.func`` of a module reads and writes through its arguments.

    The module must still exist.
    """

    def __init__(self, module: ir.Module) -> None:
        self._kernels: dict[str, Op] = {}
        self._effects: dict[str, tuple[Effect, ...]] = {}
        self._atomic: dict[str, tuple[bool, ...]] = {}
        self._go_anywhere: set[str] = set()  # names of kernels
        for holder in walk(module, "gpu.module"):
            for function in walk(holder, "gpu.func"):
                self._add(f"@{name_of(holder)}::@{name_of(function)}", function)

    def _add(self, name: str, kernel: Op) -> None:
        arguments = _arguments(kernel)
        self._kernels[name] = kernel
        self._effects[name] = tuple(map(_effect_of_argument, arguments))
        self._atomic[name] = tuple(map(_is_atomic, arguments))
        if _goes_anywhere(kernel):
            self._go_anywhere.add(name)

    def overwrites_unread(self, launch: Op, value: Value) -> bool:
        """Returns whether a launch is proved to store all of an argument ``value`` and to read none of it."""
        kernel = self._kernels.get(str(launch.attributes["kernel"]))
        indices = [index for index, argument in enumerate(operands(launch, ARGUMENTS)) if argument == value]
        if kernel is None or len(indices) != 1:
            return False
        effect = self._effects[str(launch.attributes["kernel"])][indices[0]]
        return not effect.reads and stores_every_element(launch, kernel, indices[0])

    def of_launch(self, launch: Op) -> tuple[EffectInstance, ...]:
        """Returns what a launch may do to each argument that it does not pass by value (scalars, vectors).

        A kernel that the module does not have may do ANYTHING.
        """
        values = operands(launch, ARGUMENTS)
        effects = self._effects.get(str(launch.attributes["kernel"]), (ANYTHING,) * len(values))
        pairs = zip(values, effects, strict=True)
        return tuple(
            EffectInstance(value, effect) for value, effect in pairs if not is_passed_by_value(value.type)
        )

    def of_launch_without_atomics(self, launch: Op) -> tuple[EffectInstance, ...]:
        """Returns what a launch may do to each argument, except those that are only used atomically."""
        values = operands(launch, ARGUMENTS)
        atomic = self._atomic.get(str(launch.attributes["kernel"]), (False,) * len(values))
        left_out = {value for value, is_atomic in zip(values, atomic, strict=True) if is_atomic}
        return tuple(instance for instance in self.of_launch(launch) if instance.value not in left_out)

    def goes_anywhere(self, launch: Op) -> bool:
        """Returns whether a launch may access any buffer, by a pointer of unknown origin or a global.

        Constant globals and those in shared memory do not count. False for a kernel that the module does not
        have.
        """
        return str(launch.attributes["kernel"]) in self._go_anywhere


def _effect_of_argument(argument: Value) -> Effect:
    if is_passed_by_value(argument.type):
        return NOTHING
    return effect_of(argument)


def _goes_anywhere(kernel: Op) -> bool:
    """Returns whether a kernel uses a pointer to unknown memory, or a global that is not constant."""
    for op in walk(kernel, "llvm.inttoptr", "llvm.load"):
        if str(op.results[0].type) in POINTERS and may_be_unknown_pointer(op.results[0]):
            return True
    for op in walk(kernel, "memref.get_global"):
        if not is_workgroup(op.results[0].type) and not _is_constant(op, kernel):
            return True
    return False


def effect_of(buffer: Value) -> Effect:
    """Returns the union of the effects of all uses of a memref and of its views, or of a TMA descriptor."""
    effects = [effect_of_use(op, index) for op, index in uses_of(buffer)]
    return Effect(
        any(effect.reads for effect in effects),
        any(effect.writes for effect in effects),
        all(effect.is_bounded for effect in effects),
    )


def is_passed_by_value(type_: Type) -> bool:
    """Returns whether a launch passes values of a type by value: scalars (also complex) and vectors."""
    return isinstance(type_, ir.IntegerType | ir.IndexType | ir.FloatType | ir.VectorType | ir.ComplexType)


def _arguments(function: Op) -> list[Value]:
    inputs = function_type(function).inputs
    return list(function.regions[0].blocks[0].arguments)[: len(inputs)]  # attributions follow them


def _is_atomic(buffer: Value) -> bool:
    uses = users_of(buffer)
    return bool(uses) and all(
        op.name in ATOMIC or (op.name in VIEWS and _is_atomic(op.results[0])) for op in uses
    )


def effect_of_use(op: Op, index: int) -> Effect:
    """Returns what ``op`` may do to its memref operand ``index``.

    If ``op`` makes a view of the operand, what the users of the view may do.
    """
    if op.name not in VIEWS and op.name != CAST:
        return effect_on_operand(op, index)
    effect = effect_of(op.results[0])
    return effect._replace(is_bounded=effect.is_bounded and op.name not in UNBOUNDED)


# Effects of the ops of a host function that is not lowered yet. An op that is not listed may read and write
# each of its memref operands. Not handled: ops through which a buffer's address escapes, and asynchronous
# device code; both are errors.


def host_effects(op: Op) -> tuple[EffectInstance, ...]:
    """Returns what an op on the host may do to each memref that it uses and that is defined outside of it.

    Memrefs used in the regions of an op other than linalg count as read and written. Raises
    CandidateError(COMPILE) for an op through which the address of a memref escapes.
    """
    effects = [(value, ANYTHING) for value in _used_inside(op)]
    if not list(op.regions) or op.name.startswith("linalg."):
        own = set(op.operands)
        effects = [*_effects_of_operands(op), *(pair for pair in effects if pair[0] not in own)]
    return tuple(EffectInstance(value, effect) for value, effect in effects if effect != NOTHING)


def is_filled(op: Op, buffer: Value) -> bool:
    """Returns whether ``op`` is a ``linalg.fill`` of memref ``buffer``, which overwrites all of it unread."""
    return bool(op.name == "linalg.fill" and len(op.operands) == 2 and op.operands[1] == buffer)


def _effects_of_operands(op: Op) -> list[tuple[Value, Effect]]:
    return [
        (value, NOTHING if op.name in NO_READ_OR_WRITE else effect_on_operand(op, index))
        for index, value in enumerate(op.operands)
        if is_buffer(value.type)
    ]


def _used_inside(op: Op) -> list[Value]:
    """Returns the memrefs from outside that an op and its nested ops use; raises if a memref escapes."""
    used: dict[Value, None] = {}
    made: set[Value] = set()
    for nested in _with_nested(op):
        _reject_escapes(nested)
        used.update(dict.fromkeys(value for value in nested.operands if is_buffer(value.type)))
        if nested != op:
            made.update(nested.results)
        made.update(arguments_in(nested))
    return [value for value in used if value not in made]


def _reject_escapes(op: Op) -> None:
    buffers = [value for value in op.operands if is_buffer(value.type)]
    if op.name in ESCAPES and buffers:
        raise CandidateError(
            Stage.COMPILE,
            f"{described(buffers[0])}: found {op.name}, allowed operations that do not keep its address",
        )


def reject_device_code(function: Op, structured: set[Op]) -> None:
    """Raises CandidateError(COMPILE) for GPU ops of a host function that the memory analysis cannot follow.

    Allowed are ``gpu.alloc``, ``gpu.dealloc``, and launches without async tokens that are in ``structured``:
    launches in blocks that the analysis follows (func.func, scf.for, scf.while, scf.if).
    """
    for op in _with_nested(function):
        if op.name.startswith("gpu.") and op.name not in SHARED_MEMORY and not _is_plain_launch(op):
            raise CandidateError(Stage.COMPILE, f"found {op.name}, allowed gpu.launch_func without tokens")
    for launch in walk(function, "gpu.launch_func"):
        if launch not in structured:
            parent = launch.parent.operation.name
            raise CandidateError(
                Stage.COMPILE, f"found a launch in {parent}, allowed func.func, scf.for, scf.while, scf.if"
            )


def _with_nested(op: Op) -> list[Op]:
    return walk_where(op, lambda _: True)


def _is_plain_launch(op: Op) -> bool:
    return (
        op.name == "gpu.launch_func"
        and not list(op.results)
        and ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0] == 0
    )


def _is_constant(get: Op, function: Op) -> bool:
    symbol = ir.FlatSymbolRefAttr(get.attributes["name"]).value
    same = [op for op in walk(function.parent, "memref.global") if name_of(op) == symbol]
    return any("constant" in memory.attributes for memory in same)


# Proofs that a launch of a kernel overwrites a whole buffer.
#
# Proved for two forms, with launches of constant sizes. In the first every thread executes a store once, at
# indices that are linear in its ids and cover the whole buffer, as the digits of a mixed-radix number do::
#
#     %i = gpu.block_id x        // of 4
#     %j = gpu.thread_id x       // of 8
#     memref.store %v, %a[%i, %j] : memref<4x8xf32>
#
# The second is what ``launch_parallel_loops`` makes: a linear index, compared with the number of elements and
# taken apart into digits (delinearized).


def stores_every_element(launch: Op, kernel: Op, index: int) -> bool:
    """Returns whether a launch is proved to store every element of its memref argument ``index``.

    False if that is not proved, as for a dynamic shape or a kernel of several blocks. Loads are not looked
    at.
    """
    reading = _Reading(launch, kernel)
    blocks = list(kernel.regions[0].blocks)
    target = blocks[0].arguments[index]
    type_ = target.type
    if len(blocks) != 1 or not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return False
    stores = [op for op in walk(kernel, "memref.store") if op.operands[1] == target]
    return any(reading.covers(store, list(type_.shape)) for store in stores)


class _Reading:
    """Values of a kernel's body, evaluated for one of its launches."""

    def __init__(self, launch: Op, kernel: Op) -> None:
        self._body = kernel.regions[0].blocks[0]
        passed = operands(launch, ARGUMENTS)
        # block arguments for memory of the kernel's own (attributions) follow those that the launch gives
        self._given = dict(zip(self._body.arguments, passed, strict=False))
        self._sizes = {
            name: [
                constant_of(operands(launch, segment)[0]) for segment in range(segments.start, segments.stop)
            ]
            for name, segments in (("block_id", GRID), ("thread_id", BLOCK))
        }

    def covers(self, store: Op, shape: list[int]) -> bool:
        indices = list(store.operands)[2:]
        if store.block == self._body:
            return self._cover_all(list(map(self._linear, indices)), shape)
        # `if number < total`: each thread writes the element whose indices are the digits of its linear
        # index
        guard = store.parent.operation
        if guard.name != "scf.if" or guard.block != self._body or store.block != guard.regions[0].blocks[0]:
            return False
        compare = op_of(guard.operands[0], "arith.cmpi")
        if compare is None or ir.IntegerAttr(compare.attributes["predicate"]).value not in LESS:
            return False
        number, total = compare.operands
        count = self._number(total)
        length = self._range_length(self._linear(number))
        if count is None or length is None or length < count or count != math.prod(shape):
            return False
        return all(
            self._is_mixed_radix_digit(index, number, size, math.prod(shape[axis + 1 :]), is_first=axis == 0)
            for axis, (index, size) in enumerate(zip(indices, shape, strict=True))
        )

    def _is_mixed_radix_digit(
        self, index: Value, number: Value, size: int, below: int, *, is_first: bool
    ) -> bool:
        """Returns whether an index is ``number / below % size``, ``below`` the product of the sizes after it.

        The first index needs no remainder: the guard keeps ``number`` below the product of all sizes.
        """
        if size == 1 and self._number(index) == 0:
            return True
        remainder = op_of(index, "arith.remui")
        if remainder is not None and self._number(remainder.operands[1]) == size:
            index = remainder.operands[0]
        elif not is_first:
            return False
        divisor = 1
        while index != number:
            quotient = op_of(index, "arith.divui")
            by = None if quotient is None else self._number(quotient.operands[1])
            if quotient is None or by is None:
                return False
            index = quotient.operands[0]
            divisor = divisor * by
        return divisor == below

    def _cover_all(self, indices: Sequence[Linear | None], shape: list[int]) -> bool:
        """Returns whether the indices cover their sizes, each linear in ids that no other index uses."""
        known = [index for index in indices if index is not None]
        ids = [name for names in known for name in names if name]
        lengths = list(map(self._range_length, known))
        return len(known) == len(shape) and len(set(ids)) == len(ids) and lengths == shape

    def _range_length(self, linear: Linear | None) -> int | None:
        """Returns n if a linear form takes every value from 0 to n - 1, else None.

        So it is where, by rising factors, each factor is the product of the sizes of the ids before it.
        """
        if linear is None or linear.get(CONSTANT, 0):
            return None
        length = 1
        for name, factor in sorted(linear.items(), key=lambda term: term[1]):
            size = self._size(name) if name else 1
            if size is None or (name and factor != length):
                return None
            length *= size
        return length

    def _size(self, name: str) -> int | None:
        id_name, axis = name.split(".")
        return self._sizes[id_name][int(axis)]

    def _number(self, index: Value) -> int | None:
        return constant_of(self._given.get(index, index))

    def _linear(self, index: Value) -> Linear | None:
        """Returns a value as a linear form of block and thread ids; None for a value that is not linear."""
        number = self._number(index)
        if number is not None:
            return {CONSTANT: number}
        if isinstance(index.owner, ir.Block):
            return None
        op = index.owner.operation
        if op.name in ("gpu.block_id", "gpu.thread_id"):
            return {f"{op.name.removeprefix('gpu.')}.{axis_of(op)}": 1}
        if op.name in ("gpu.block_dim", "gpu.grid_dim"):
            id_name = "thread_id" if op.name == "gpu.block_dim" else "block_id"
            size = self._sizes[id_name][axis_of(op)]
            if size is None:
                return None
            return {CONSTANT: size}
        if op.name not in ("arith.addi", "arith.muli"):
            return None
        left, right = map(self._linear, op.operands)
        if left is None or right is None:
            return None
        if op.name == "arith.addi":
            return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
        return _product(left, right)


def _product(left: Linear, right: Linear) -> Linear | None:
    if set(left) != {CONSTANT}:
        left, right = right, left
    if set(left) != {CONSTANT}:
        return None
    return {name: factor * left[CONSTANT] for name, factor in right.items()}
