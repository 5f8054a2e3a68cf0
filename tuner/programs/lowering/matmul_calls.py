"""Replaces a program's matmuls by calls of tuned CPU kernels; non-contiguous arrays are copied first.

``call_kernels`` replaces the matmuls and compiles their kernels; ``link`` adds the kernels to the program in
LLVM dialect.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tuner.core.errors import Stage, failing_at
from tuner.core.interfaces import Partition, Script
from tuner.core.problem import Problem
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu.lowering import bufferize_remaining_tensors, lower_to_llvm, reject_unjittable
from tuner.mlir.effects.accesses import FORWARDING
from tuner.mlir.effects.aliases import VIEWS, aliases_of
from tuner.mlir.effects.op_effects import READ_ONLY_ATTRIBUTE, effect_on_operand
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import is_row_major
from tuner.mlir.ir.reading import ancestor_in_block, attributes_of, name_of, ops_in, source_of
from tuner.mlir.transform import apply_script, parse
from tuner.payload.cpu import element_offsets, payload_mlir
from tuner.payload.partitions import partitions_in
from tuner.programs.lowering.matmul_recognition import MatmulMatch, find_matmuls
from tuner.programs.lowering.read_program import ProgramPayload

ALLOCATIONS = frozenset({"memref.alloc", "memref.alloca", "gpu.alloc"})
POINTER = "!llvm.ptr"


class PackedViews:
    """Creates contiguous copies of non-contiguous matmul operands, as a program's matmuls are replaced.

    Two operands share a copy if they are the same view in one block, of a function argument or an allocation,
    and no operation between them may write the view's buffer, directly or through another view.
        linalg.generic ... ins(%view, %b : memref<4x8xf32, strided<[16, 1]>>, ...) outs(%c : ...)
        linalg.generic ... ins(%view, %d : memref<4x8xf32, strided<[16, 1]>>, ...) outs(%e : ...)
      becomes
        %packed = memref.alloc() : memref<4x8xf32>
        scf.parallel (%i, %j) = ... { <%packed[%i, %j] = %view[%i, %j]> }
        <multiply %packed, %b, %c>
        <multiply %packed, %d, %e>
        memref.dealloc %packed : memref<4x8xf32>
    """

    def __init__(self, matches: Sequence[MatmulMatch]) -> None:
        """Determines which operands of ``matches``, a program's matmuls in order, share a copy."""
        self._copies = _copies(matches)  # per match: numbers of the copies of A and B
        self._uses_left = Counter(chain.from_iterable(self._copies))
        self._packed: dict[int, Value] = {}  # number of a copy -> its buffer

    def take(self, match: int, factor: int, view: Value) -> Value:
        """Returns a contiguous memref of factor 0 (A) or 1 (B) of a matmul: ``view`` itself, or a copy.

        Call it once per match and factor, in program order: ``free_unused`` counts the calls.
        """
        copy = self._copies[match][factor]
        self._uses_left[copy] -= 1
        if is_row_major(view.type):
            return view
        if copy not in self._packed:
            self._packed[copy] = allocate(ir.MemRefType.get(view.type.shape, view.type.element_type))
            building.copy(view, self._packed[copy])
        return self._packed[copy]

    def free_unused(self) -> None:
        """Creates deallocations, at the current insertion point, of copies that no later match uses."""
        for copy in [copy for copy in self._packed if not self._uses_left[copy]]:
            create("memref.dealloc", [], [self._packed.pop(copy)])


def allocate(type_: ir.MemRefType) -> Value:
    """Creates a ``memref.alloc`` of a static memref type at the insertion point; returns its result."""
    return value("memref.alloc", type_, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))


def _copies(matches: Sequence[MatmulMatch]) -> list[tuple[int, int]]:
    seen: list[tuple[Op, Value, int]] = []  # (matmul, factor, copy)
    copies = []
    for match in matches:
        for view in (match.a, match.b):
            equal = (
                copy
                for op, earlier, copy in reversed(seen)
                if is_same_view(earlier, view) and _is_unwritten(view, op, match.op)
            )
            seen.append((match.op, view, next(equal, len(seen))))
        copies.append((seen[-2][2], seen[-1][2]))
    return copies


def is_same_view(left: Value, right: Value) -> bool:
    """Returns whether two memrefs are one value, or results of equal view operations on the same memrefs."""
    if left == right:
        return True
    if isinstance(left.owner, ir.Block) or isinstance(right.owner, ir.Block) or left.type != right.type:
        return False
    first = left.owner
    second = right.owner
    pairs = zip(first.operands, second.operands, strict=False)
    return (
        first.name == second.name
        and first.name in VIEWS
        and attributes_of(first) == attributes_of(second)
        and len(first.operands) == len(second.operands)
        and all(is_same_view(*pair) for pair in pairs)
    )


def _is_unwritten(view: Value, first: Op, last: Op) -> bool:
    """Returns whether no operation from ``first`` on, before ``last``, can write the view's buffer.

    False, too, where this is not known: in two blocks, or if other memory may hold the buffer's address.
    """
    buffer = source_of(view, VIEWS)
    if first.block != last.block or not _can_be_followed(buffer):
        return False
    aliases = aliases_of(buffer)
    ops = ops_in(first.block)
    between = set(ops[ops.index(first) : ops.index(last)])
    writers = {
        ancestor_in_block(user, first.block) for user in aliases.users if _writes(user, aliases.values)
    }
    return not aliases.is_kept and not between & writers


def _can_be_followed(buffer: Value) -> bool:
    """True if a buffer is an argument or an allocation, so that def-use chains show all aliases."""
    if isinstance(buffer.owner, ir.Block):
        return bool(buffer.owner.owner.operation.name == "func.func")
    return buffer.owner.name in ALLOCATIONS


def _writes(op: Op, aliases: frozenset[Value]) -> bool:
    alias_indices = [index for index, operand in enumerate(op.operands) if operand in aliases]
    return op.name not in FORWARDING and any(effect_on_operand(op, index).writes for index in alias_indices)


def replace_matmuls(
    matches: Sequence[MatmulMatch], multiply: Callable[[MatmulMatch, Value, Value, Value], None]
) -> None:
    """Replaces matmuls of a program, in place, by code that tuned kernels or other functions create.

    ``multiply(match, a, b, c)`` overwrites C with A B, of three contiguous row-major memrefs. Unless C was
    filled with zeros, the product goes to a separate buffer, which is added to C afterwards; a C that was
    filled but is not contiguous gets a copy of such a buffer.

        linalg.generic ... ins(%a, %b : ...) outs(%c : memref<4x16xf32>)    // C += A B
      becomes
        %product = memref.alloc() : memref<4x16xf32>
        <multiply %a, %b, %product>
        scf.parallel (%i, %j) = ... { <%c[%i, %j] += %product[%i, %j]> }
        memref.dealloc %product : memref<4x16xf32>
    """
    views = PackedViews(matches)
    for index, match in enumerate(matches):
        is_added = match.zero_fill is None
        is_own = is_added or not is_row_major(match.c.type)
        with match.op.location, ir.InsertionPoint(match.op):
            a, b = (views.take(index, factor, operand) for factor, operand in enumerate((match.a, match.b)))
            type_ = match.c.type
            c = allocate(ir.MemRefType.get(type_.shape, type_.element_type)) if is_own else match.c
            multiply(match, a, b, c)
            if is_added:
                building.add_to(match.c, c)
            elif is_own:
                building.copy(c, match.c)
            if is_own:
                create("memref.dealloc", [], [c])
            views.free_unused()
        match.op.erase()
        if match.zero_fill is not None:
            match.zero_fill.erase()


@dataclass(frozen=True)
class LinkedKernel:
    """A script's CPU kernel for one matmul problem, in LLVM dialect; a call computes one partition of C."""

    problem: Problem
    llvm: str  # module in LLVM dialect; symbols that it defines end in ``suffix``
    suffix: str
    partitions: tuple[Partition, ...]


def call_kernels(payload: ProgramPayload, scripts: Mapping[Problem, Script]) -> tuple[LinkedKernel, ...]:
    """Replaces matmuls that have a script by calls of compiled CPU kernels, in place; returns the kernels.

    The functions are only declared, because the kernels have their own pipeline and calling convention;
    ``link`` adds them when the program is in LLVM dialect as well. Raises CandidateError for a script that
    fails.

        linalg.generic ... ins(%a, %b : ...) outs(%c : memref<512x512xf32>)
      becomes, where C was filled with zeros
        %address = memref.extract_aligned_pointer_as_index %a : memref<512x512xf32> -> index
        %0 = arith.index_cast %address : index to i64
        %1 = llvm.inttoptr %0 : i64 to !llvm.ptr
        ...
        llvm.call @matmul_0(%1, %3, %5) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
    """
    kernels: dict[Problem, LinkedKernel] = {}
    matches = [match for match in find_matmuls(payload) if match.problem in scripts]
    for problem in dict.fromkeys(match.problem for match in matches):
        script = scripts[problem]
        suffix = f"_{len(kernels)}"
        with failing_at(Stage.BIND):
            partitions = partitions_in(script.text, problem)
        module = parse(payload_mlir(problem, partitions), "payload")
        apply_script(module, parse(script.text, "script"))
        bufferize_remaining_tensors(module)
        text = lower_to_llvm(module)
        reject_unjittable(text)
        for op in module.body.operations:
            if _has_body(op.operation):
                name = name_of(op.operation)
                text = re.sub(rf"@{re.escape(name)}\b", f"@{name}{suffix}", text)
        kernels[problem] = LinkedKernel(problem, text, suffix, partitions)
        type_ = ir.Type.parse(f"!llvm.func<void ({POINTER}, {POINTER}, {POINTER})>")
        for entry in dict.fromkeys(partition.entry for partition in partitions):
            attributes = {
                "sym_name": ir.StringAttr.get(f"{entry}{suffix}"),
                "function_type": ir.TypeAttr.get(type_),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            }
            with ir.InsertionPoint(payload.module.body):
                ir.Operation.create("llvm.func", attributes=attributes, regions=1)
    replace_matmuls(matches, lambda match, *arrays: _call(kernels[match.problem], arrays))
    return tuple(kernels.values())


def link(module: ir.Module, kernels: tuple[LinkedKernel, ...]) -> None:
    """Adds the definitions of kernels to a program in LLVM dialect, in place of their declarations.

    ``kernels``: what ``call_kernels`` returned for the program.
    """
    for kernel in kernels:
        own = parse(kernel.llvm, "kernel")
        names = {name_of(op.operation) for op in own.body.operations if _has_body(op.operation)}
        for op in list(module.body.operations):
            if name_of(op.operation) in names:
                op.operation.erase()
        known = {name_of(op.operation) for op in module.body.operations}
        for op in list(own.body.operations):
            if name_of(op.operation) not in known:
                module.body.append(op.operation)


def _has_body(op: Op) -> bool:
    return op.name != "llvm.func" or len(op.regions[0].blocks) > 0


def _call(kernel: LinkedKernel, arrays: tuple[Value, ...]) -> None:
    for partition in kernel.partitions:
        offsets = element_offsets(kernel.problem, partition)
        pointers = [
            _pointer(array, offset, is_read_only=index < len(arrays) - 1)
            for index, (array, offset) in enumerate(zip(arrays, offsets, strict=True))
        ]
        create(
            "llvm.call",
            [],
            pointers,
            callee=ir.FlatSymbolRefAttr.get(f"{partition.entry}{kernel.suffix}"),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(pointers), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )


def _pointer(array: Value, offset: int, *, is_read_only: bool) -> Value:
    wide = ir.IntegerType.get_signless(64)
    words = {READ_ONLY_ATTRIBUTE: ir.UnitAttr.get()} if is_read_only else {}
    start = value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), array, **words)
    address = value("arith.index_cast", wide, start)
    if offset:
        size = array.type.element_type.width // 8
        distance = value("arith.constant", wide, value=ir.IntegerAttr.get(wide, offset * size))
        address = value("arith.addi", wide, address, distance)
    return value("llvm.inttoptr", ir.Type.parse(POINTER), address)
