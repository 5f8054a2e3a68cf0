"""Alias analysis: which values may hold a buffer's address, and which buffers a value may be a view of.

``aliases_of`` follows the address of a buffer forwards through ops, ``roots_of`` goes backwards to buffers;
``AliasSets`` unifies the buffers that control flow may exchange for one another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Block, Op, Type, Value, ir
from tuner.mlir.effects.launches import ARGUMENTS, SEGMENTS
from tuner.mlir.effects.op_effects import NO_MEMORY_EFFECT, READERS
from tuner.mlir.effects.runner_signatures import is_runner_function
from tuner.mlir.ir.reading import arguments_in, callee_of, name_of, op_of, parents_of, walk

# Def-use edges through structured control flow: which values a result or block argument of scf ops may be.
#
# Covers, for scf.for, scf.while, scf.if and scf.index_switch, what MLIR's ``RegionBranchOpInterface`` gives
# in C++: an iter_arg is its initial value or the value that an iteration yields; a result of scf.if is the
# value that either branch yields. ``targets_of`` gives the same edges forwards.

FOR_BOUNDS = 3  # operands of scf.for before its initial values
BRANCHES = frozenset({"scf.if", "scf.index_switch"})
STRUCTURED = BRANCHES | {"scf.for", "scf.while"}  # whose regions are walked; others count as a single op
ASYNC = "!gpu.async.token"
ADDRESS_BITS = 64  # of device memory, and of x86-64
# Where an op hands an address on: which results, memory or callee may hold it afterwards.

# Ops whose results are what is in memory, or facts about a memref: no address that they were given.
RESULTS_ARE_DATA = (
    READERS
    | NO_MEMORY_EFFECT
    | {"memref.atomic_rmw", "memref.generic_atomic_rmw", "llvm.load", "llvm.atomicrmw", "llvm.cmpxchg"}
)
# Op that stores one of its operands in memory -> the index of this operand, from the end if negative.
STORED = {
    **dict.fromkeys(("memref.store", "affine.store", "affine.vector_store", "llvm.store"), 0),
    **dict.fromkeys(("vector.store", "vector.transfer_write", "llvm.intr.masked.store"), 0),
    **dict.fromkeys(("llvm.intr.masked.compressstore", "llvm.intr.masked.scatter", "llvm.intr.vp.store"), 0),
    **dict.fromkeys(("llvm.intr.experimental.vp.strided.store", "llvm.intr.matrix.column.major.store"), 0),
    **dict.fromkeys(("vector.maskedstore", "vector.compressstore", "vector.scatter"), -1),
    **dict.fromkeys(("memref.atomic_rmw", "memref.atomic_yield"), 0),
    **dict.fromkeys(("gpu.memset", "gpux.memset", "llvm.cmpxchg", "llvm.atomicrmw"), -1),
}
# Dialects whose ops keep no address, except STORED, UNKNOWN_CODE, and func.call of unknown functions.
KEEP_NOTHING = frozenset(
    {
        *("arith", "index", "math", "vector", "affine", "scf", "cf", "builtin", "bufferization", "ub"),
        *("memref", "gpu", "gpux", "nvgpu", "nvvm", "llvm", "func"),
    }
)
UNKNOWN_CODE = frozenset(
    {"llvm.call", "llvm.call_intrinsic", "llvm.inline_asm", "llvm.invoke", "nvvm.inline_ptx"}
)
# Ops whose result points to an object that is not a buffer.
OTHER_OBJECTS = frozenset({"llvm.mlir.addressof", "llvm.alloca", "llvm.mlir.zero"})
LAUNCHES = frozenset({"gpu.launch_func", "gpux.launch_func"})
SELECTS = ("arith.select", "llvm.select")
# Ops whose first result aliases their first operand.
VIEWS = frozenset(
    {
        *("memref.subview", "memref.cast", "memref.view", "memref.reinterpret_cast", "memref.transpose"),
        *("memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast"),
        *("memref.assume_alignment", "memref.extract_strided_metadata", "memref.reshape"),
    }
)
CAST = "builtin.unrealized_conversion_cast"
# Ops whose result is a new buffer.
SOURCES = frozenset(
    {
        *("memref.alloc", "memref.alloca", "memref.get_global", "gpu.alloc", "gpux.alloc"),
        CAST,  # of a descriptor that a call of the runtime returned
    }
)
FREEING = frozenset({"memref.dealloc", "gpu.dealloc", "gpux.dealloc", "memref.realloc"})


def is_carried(value: Value) -> bool:
    """Returns whether scf control flow forwards values to ``value``: a result, or an argument of a body.

    The index of an scf.for is not carried.
    """
    if isinstance(value.owner, ir.Block):
        op = value.owner.owner.operation
        return bool(op.name == "scf.while" or (op.name == "scf.for" and value.arg_number > 0))
    return value.owner.operation.name in STRUCTURED


def sources_of(value: Value) -> list[Value]:
    """Returns the initial and yielded values that control flow may forward to ``value``.

    ``value`` must be a result or an argument of an scf op for which ``is_carried`` holds.
    """
    if not isinstance(value.owner, ir.Block):
        return _sources_of_result(value.owner.operation, value.result_number)
    op = value.owner.owner.operation
    if op.name == "scf.for":
        return _initial_and_yielded(op, value.arg_number - 1)
    if value.owner == op.regions[0].blocks[0]:
        return [op.operands[value.arg_number], terminator_of(op, 1).operands[value.arg_number]]
    return [terminator_of(op, 0).operands[1 + value.arg_number]]


def targets_of(op: Op, index: int) -> list[Value] | None:
    """Returns the results and block arguments to which control flow may forward operand ``index`` of ``op``.

    None if ``op`` neither has regions nor ends a block. Exact for ``STRUCTURED`` ops; other ops with regions
    may forward each operand to all targets, but linalg and gpu.launch forward none.
    """
    if op.name == "scf.for":
        arguments = op.regions[0].blocks[0].arguments
        carried = index - FOR_BOUNDS
        if carried < 0:
            return [arguments[0]]
        return [arguments[1 + carried], op.results[carried]]
    if op.name == "scf.while":
        return [op.regions[0].blocks[0].arguments[index]]
    if op.name.startswith("linalg.") or op.name in ("gpu.launch", *BRANCHES):
        return []
    if list(op.successors):
        return [argument for block in op.successors for argument in block.arguments]
    if list(op.regions):
        return _all_targets(op)
    if list(op.results) or op != last_of(op.block):
        return None
    return _targets_of_yield(op, op.parent.operation, index)


def _targets_of_yield(end: Op, parent: Op, index: int) -> list[Value]:
    if parent.name in BRANCHES:
        return [parent.results[index]]
    if parent.name == "scf.for":
        return [parent.regions[0].blocks[0].arguments[1 + index], parent.results[index]]
    if parent.name == "scf.while":
        if end.name == "scf.yield":
            return [parent.regions[0].blocks[0].arguments[index]]
        left = index - 1  # operand 0 is the condition
        if index:
            return [parent.regions[1].blocks[0].arguments[left], parent.results[left]]
        return []
    if parent.name.endswith(".func"):
        return []
    return _all_targets(parent)


def _all_targets(op: Op) -> list[Value]:
    return [*op.results, *arguments_in(op)]


def terminator_of(op: Op, region: int) -> Op:
    """Returns the last op of the only block of region ``region``, an index, of ``op``."""
    return last_of(op.regions[region].blocks[0])


def last_of(block: Block) -> Op:
    """Returns the last op of a block, which is its terminator where the block has one."""
    return block.operations[len(block.operations) - 1].operation


def _sources_of_result(op: Op, index: int) -> list[Value]:
    if op.name == "scf.for":
        return _initial_and_yielded(op, index)
    if op.name == "scf.while":
        return [terminator_of(op, 0).operands[1 + index]]
    return [terminator_of(op, region).operands[index] for region in range(len(op.regions))]


def _initial_and_yielded(loop: Op, index: int) -> list[Value]:
    return [loop.operands[FOR_BOUNDS + index], terminator_of(loop, 0).operands[index]]


class HandedOn(NamedTuple):
    """Where the address in one operand of an op goes: to results and block arguments, or also to memory."""

    values: tuple[Value, ...]  # which may hold the address then: results and block arguments
    is_kept: bool = False  # it may be in memory, so that there may be uses that no def-use chain shows


def is_buffer(type_: Type) -> bool:
    """Returns whether a type is a memref, ranked or unranked."""
    return isinstance(type_, ir.MemRefType | ir.UnrankedMemRefType)


def is_token(value: Value) -> bool:
    """Returns whether a value is a ``!gpu.async.token``."""
    return str(value.type) == ASYNC


def handed_on(op: Op, index: int) -> HandedOn:
    """Returns what ``op`` does with the address in its operand ``index``, which may be of any type.

    Besides memrefs, TMA descriptors, integers, pointers, structs, tuples and vectors may hold an address.

        %n = memref.extract_aligned_pointer_as_index %m : memref<4xf32> -> index  // hands %m on to %n
        memref.store %n, %box[%i] : memref<1xindex>                               // keeps %n: may be anywhere

    Conservative: an operation that is not known hands each operand on to all results that can hold an
    address, and may keep the operand in memory. Tokens of asynchronous work hold no address.
    """
    if op.name in LAUNCHES:
        return HandedOn((), _is_kept_by_kernel(op, index))
    values = () if op.name in RESULTS_ARE_DATA else tuple(_receivers(op, index))
    return HandedOn(values, _is_kept(op, index))


def buffers_with_address_in(value: Value) -> tuple[Value, ...]:
    """Returns the memrefs whose address ``value`` (an index, pointer, struct, ...) may hold.

    An address that was stored and loaded again is not followed.
    """
    return tuple(origin for origin in _possible_sources(value) if is_buffer(origin.type))


def may_be_unknown_pointer(pointer: Value) -> bool:
    """Returns whether a pointer may be made from something other than known objects: it may point anywhere.

    Known objects are memrefs and other values with an origin that the analysis can follow. True also where
    control flow or a select chooses between such an object and an unknown address.
    """
    values = [pointer, *_possible_sources(pointer)]
    sources = dict(zip(values, map(_sources_in_one_step, values), strict=True))
    # Assumes that all are known, and removes those that are not until nothing changes: so a cycle through
    # a loop does not make its values unknown.
    assumed_known = set(values)
    while unknown := {
        value for value in assumed_known if not _is_made_from(value, sources[value], assumed_known)
    }:
        assumed_known -= unknown
    return pointer not in assumed_known


def _is_made_from(value: Value, sources: list[Value], assumed_known: set[Value]) -> bool:
    """Returns whether a value is a known object, or is made from values that are assumed to be known.

    Of a select or a loop all ``sources`` must be known: any of them may be the value. Of another op one
    suffices, the pointer: the others are offsets.
    """
    if is_buffer(value.type) or op_of(value, *OTHER_OBJECTS) is not None:
        return True
    select = op_of(value, *SELECTS)
    if select is not None:
        return assumed_known.issuperset(list(select.operands)[1:])
    if is_carried(value):
        return assumed_known.issuperset(sources)
    return not assumed_known.isdisjoint(sources)


def _possible_sources(value: Value) -> list[Value]:
    """Returns the values whose address ``value`` may hold, found backwards; the search ends at memrefs."""
    origins: dict[Value, None] = {}
    open_values = _sources_in_one_step(value)
    while open_values:
        open_value = open_values.pop()
        if open_value not in origins:
            origins[open_value] = None
            open_values.extend([] if is_buffer(open_value.type) else _sources_in_one_step(open_value))
    return list(origins)


def _sources_in_one_step(value: Value) -> list[Value]:
    """Returns the values whose address may be in ``value``: the relation of ``handed_on``, backwards."""
    if is_carried(value):
        return sources_of(value)
    if isinstance(value.owner, ir.Block):
        parent = value.owner.owner.operation
        if parent.name == "scf.for":
            return list(parent.operands)[:FOR_BOUNDS]
        return []
    op = value.owner.operation
    return [operand for index, operand in enumerate(op.operands) if value in handed_on(op, index).values]


def _receivers(op: Op, index: int) -> list[Value]:
    targets = targets_of(op, index)
    if targets is not None:
        return list(filter(_can_hold, targets))
    if op.name == "arith.select" and index == 0:
        return []
    results = [result for result in op.results if _can_hold(result) or "bitcast" in op.name]
    views = [result for result in results if is_buffer(result.type)]
    is_view = bool(views) and is_buffer(op.operands[index].type)
    return views if is_view else results  # the other results of a view are its sizes and strides


def _can_hold(value: Value) -> bool:
    type_ = value.type
    if isinstance(type_, ir.VectorType):
        type_ = type_.element_type
    is_bit = isinstance(type_, ir.IntegerType) and type_.width == 1
    is_short = isinstance(type_, ir.FloatType) and type_.width < ADDRESS_BITS
    return not (is_bit or is_short or is_token(value))


def _is_kept(op: Op, index: int) -> bool:
    dialect = op.name.partition(".")[0]
    if op.name in STORED:
        return index == STORED[op.name] % len(op.operands)
    if op.name == "func.call":
        return not is_runner_function(callee_of(op))
    if dialect == "linalg":
        return not is_buffer(op.operands[index].type)  # stored in the outputs: a scalar, or what is yielded
    return dialect not in KEEP_NOTHING or op.name in UNKNOWN_CODE


def _is_kept_by_kernel(launch: Op, index: int) -> bool:
    """Returns whether a kernel may store the address in operand ``index`` of a launch to memory.

    False for a kernel without a body.
    """
    kernel = _kernel_of(launch)
    if SEGMENTS in launch.attributes:
        sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))
    else:
        sizes = []
    argument = index - sum(sizes[:ARGUMENTS])
    if kernel is None or not sizes or argument < 0:
        return False
    open_values = [kernel.regions[0].blocks[0].arguments[argument]]
    seen = set()
    while open_values:
        open_value = open_values.pop()
        if open_value in seen:
            continue
        seen.add(open_value)
        for use in open_value.uses:
            handed = handed_on(use.owner.operation, use.operand_number)
            if handed.is_kept:
                return True
            open_values += handed.values
    return False


def _kernel_of(launch: Op) -> Op | None:
    *_, function = parents_of(launch)
    op_of_name = function.parent.operation
    path = ir.SymbolRefAttr(launch.attributes["kernel"]).value
    for name in path:
        inside = [op.operation for region in op_of_name.regions for block in region.blocks for op in block]
        named = [op for op in inside if "sym_name" in op.attributes and name_of(op) == str(name)]
        if not named:
            return None
        op_of_name = named[0]
    if list(op_of_name.regions) and list(op_of_name.regions[0].blocks):
        return op_of_name
    return None


# Which buffers a memref may be a view of, traced back through views, casts and structured control flow.
#
# The counterpart of LLVM's ``getUnderlyingObjects``: a backward search over use-def chains, to allocations,
# arguments of the function and globals. ``aliases_of`` searches forwards.


def roots_of(value: Value) -> tuple[Value, ...]:
    """Returns the buffers that a memref may be a view of: one, unless control flow or a select chooses.

    Buffers are arguments of the function and results of ops of ``SOURCES``, such as allocations; the first
    ``memref.get_global`` of a symbol stands for all of that symbol. Raises CandidateError(COMPILE) for a
    memref of other origin.
    """
    origins = origins_of(value)
    for origin in origins:
        _require_known(origin)
    return tuple(dict.fromkeys(map(_first_of_symbol, origins)))


def origins_of(value: Value) -> tuple[Value, ...]:
    """Returns the first values from which ``value`` may be made by views, selects and scf ops alone."""
    roots: dict[Value, None] = {}
    seen: set[Value] = set()
    open_values = [value]
    while open_values:
        open_value = open_values.pop()
        if open_value in seen:
            continue
        seen.add(open_value)
        before = _one_step_back(open_value)
        if before is None:
            roots[open_value] = None
        else:
            open_values.extend(reversed(before))
    return tuple(roots)


def described(value: Value) -> str:
    """Returns the description of a value for a message: "%alloc of memref.alloc", or "argument %arg0"."""
    name = value.get_name()
    if isinstance(value.owner, ir.Block):
        return f"argument {name}"
    return f"{name} of {value.owner.operation.name}"


def _one_step_back(value: Value) -> list[Value] | None:
    """Returns the memrefs that ``value`` may alias by its defining op; None if the op makes no alias."""
    if is_carried(value):
        return sources_of(value)
    view = op_of(value, *VIEWS)
    if view is not None:
        return [view.operands[0]]
    choice = op_of(value, "arith.select")
    if choice is not None:
        return [choice.operands[1], choice.operands[2]]
    if op_of(value, CAST) is None:
        return None
    return list(buffers_with_address_in(value)) or None  # None: made from what a call of the runtime returned


def _require_known(origin: Value) -> None:
    if not isinstance(origin.owner, ir.Block):
        op = origin.owner.operation
        if op.name not in SOURCES or any(is_buffer(operand.type) for operand in op.operands):
            found = "found a buffer of unknown origin, allowed allocations and views"
            raise CandidateError(Stage.COMPILE, f"{described(origin)}: {found}")
        return
    parent = origin.owner.owner.operation
    if not parent.name.endswith(".func") or origin.owner != parent.regions[0].blocks[0]:
        found = f"in {parent.name}: found a buffer, allowed scf.for, scf.while, scf.if"
        raise CandidateError(Stage.COMPILE, f"{described(origin)} {found}")


def _first_of_symbol(root: Value) -> Value:
    op = op_of(root, "memref.get_global")
    if op is None:
        return root
    symbol = op.attributes["name"]
    function = next(parent for parent in parents_of(op) if parent.name.endswith(".func"))
    same = (op for op in walk(function, "memref.get_global") if op.attributes["name"] == symbol)
    return next(same).results[0]


class AliasSets:
    """Alias sets of a function: buffers that control flow may exchange for one another are in one set.

    Unification, as in Steensgaard, "Points-to Analysis in Almost Linear Time" (POPL 1996): flow-insensitive,
    and all buffers that one memref may be a view of are unified by union-find. After a loop that swaps %a
    and %b::

        %r:2 = scf.for ... iter_args(%x = %a, %y = %b) -> (...) { scf.yield %y, %x : ... }

    %a, %b, %x, %y, %r#0 and %r#1 are in one alias set. Two arguments are two buffers. Left out are memrefs
    inside of ops with regions that are not ``STRUCTURED``.
    """

    def __init__(self, function: Op) -> None:
        """Unifies the roots of every memref. Raises CandidateError(COMPILE) if an origin is unknown."""
        self._roots: dict[Value, tuple[Value, ...]] = {}
        self._leader: dict[Value, Value] = {}
        for value in buffers_of(function):
            self._roots[value] = roots_of(value)
            self._join(self._roots[value])
        leaders = dict.fromkeys(map(self._find, self._leader))
        self._index = {leader: index for index, leader in enumerate(leaders)}

    def of(self, value: Value) -> int:
        """Returns the index of the alias set of memref ``value``.

        Raises KeyError for a value that is not one of the function's ``buffers_of``.
        """
        return self._index[self._find(self._roots[value][0])]

    def knows(self, value: Value) -> bool:
        return value in self._roots

    def roots_of(self, value: Value) -> tuple[Value, ...]:
        """Returns the buffers that memref ``value`` may be a view of.

        Raises KeyError for a value that is not one of the function's ``buffers_of``.
        """
        return self._roots[value]

    def roots(self) -> list[Value]:
        """Returns all buffers of the function, in the order of the first memrefs that may be their views."""
        return list(self._leader)

    def is_singleton(self, value: Value) -> bool:
        """Returns whether ``value`` is a view of a buffer that is alone in its alias set.

        Raises KeyError for a value that is not one of the function's ``buffers_of``.
        """
        leader = self._find(self._roots[value][0])
        return [self._find(root) == leader for root in self._leader].count(True) == 1

    def _join(self, roots: tuple[Value, ...]) -> None:
        for root in roots:
            self._leader.setdefault(root, root)
            self._leader[self._find(root)] = self._find(roots[0])

    def _find(self, root: Value) -> Value:
        while self._leader[root] != root:
            root = self._leader[root]
        return root


def structured_operations(block: Block) -> Iterator[Op]:
    """Yields the ops of a block in pre-order, with the ops nested in scf control flow (``STRUCTURED``).

    Ops nested in other ops with regions are left out.
    """
    for op in list(block.operations):
        yield op.operation
        if op.operation.name in STRUCTURED:
            for region in op.operation.regions:
                for inner in region.blocks:
                    yield from structured_operations(inner)


def buffers_of(function: Op) -> Iterator[Value]:
    """Yields all memrefs of a function, views too, before their uses.

    Ops nested in other ops with regions than scf control flow (``STRUCTURED``) are left out.
    """
    block = function.regions[0].blocks[0]
    yield from (argument for argument in block.arguments if is_buffer(argument.type))
    for op in structured_operations(block):
        if op.name in STRUCTURED:
            yield from (argument for argument in arguments_in(op) if is_buffer(argument.type))
        yield from (result for result in op.results if is_buffer(result.type))


def block_of(root: Value) -> Block:
    """Returns the block in which the buffer ``root`` is defined, by an op or as an argument of the block."""
    if isinstance(root.owner, ir.Block):
        return root.owner
    return root.owner.operation.block


# Finds the values that may hold the address of a buffer, and the operations that use them.
#
# The closure of ``handed_on``, from the definition of the buffer. The token of asynchronous work is followed
# too, because the work may use the buffer until its token is waited for.


@dataclass(frozen=True)
class Aliases:
    """The values that may hold one buffer's address and their users; flags say if it is freed or escapes."""

    values: frozenset[Value]  # memrefs, descriptors, integers, pointers, ...; without tokens
    users: frozenset[Op]  # users of these values, and of the tokens of asynchronous work on the buffer
    is_freed: bool  # by any operation
    is_returned: bool  # by the function, as a memref
    is_kept: bool  # the address may be in memory, so that there may be uses that no def-use chain shows


def aliases_of(buffer: Value) -> Aliases:
    """Returns the values that may hold the address of ``buffer`` or of a part of it, with their users."""
    values: set[Value] = set()
    users: dict[Op, None] = {}
    is_kept = False
    open_values = [buffer]
    while open_values:
        open_value = open_values.pop()
        if open_value in values:
            continue
        values.add(open_value)
        for use in open_value.uses:
            user = use.owner.operation
            users[user] = None
            launches = (parent for parent in parents_of(user) if parent.name == "gpu.launch")
            open_values += [result for op in (user, *launches) for result in op.results if is_token(result)]
            if is_token(open_value):
                open_values += targets_of(user, use.operand_number) or []
                continue
            handed = handed_on(user, use.operand_number)
            open_values += handed.values
            is_kept = is_kept or handed.is_kept
    is_freed = any(user.name in FREEING and is_buffer(user.operands[-1].type) for user in users)
    held = frozenset(value for value in values if not is_token(value))
    returns = [user for user in users if user.name == "func.return"]
    is_returned = any(
        operand in held and is_buffer(operand.type) for user in returns for operand in user.operands
    )
    return Aliases(held, frozenset(users), is_freed, is_returned, is_kept)
