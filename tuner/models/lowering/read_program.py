"""Reads a user's program for lowering: calls are inlined, tensors become memrefs, deallocations are added.

``read_program`` gives a ProgramPayload; the other functions are its steps on a function or module, in place.
"""

from itertools import chain

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import last_of
from tuner.mlir.ir.building import create
from tuner.mlir.ir.memory_spaces import name_memory_spaces
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import callee_of, constant_of, location_of, unsupported, walk, walk_where
from tuner.mlir.ir.resources import split_payload
from tuner.mlir.miscompiled import avoid_miscompilations
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.deallocation import free_memory
from tuner.mlir.programs.entry import (
    WHOLE_LIMIT,
    entry_of,
    function_named,
    hide_others,
    reject_calls,
    reject_unknown_floats,
    require_default_memory,
    require_few_operations,
    require_names,
    require_resources,
)
from tuner.mlir.programs.indirect_indices import assert_indirect_indices
from tuner.mlir.programs.payload import ProgramPayload
from tuner.mlir.programs.row_writes import row_writes_to_loops
from tuner.models.lowering.aggregates import decompose_aggregates
from tuner.models.lowering.bufferize import bufferized, has_tensors
from tuner.models.lowering.composed_math import expand_composed_math
from tuner.models.lowering.packing import decompose_packing
from tuner.runtime.programs.devices import device_operations

SET_DEVICE = "mgpuSetDefaultDevice"
# Functions on an unranked memref, with the names of CudaRuntimeWrappers.cpp until 2021.
REGISTRATIONS = frozenset({"mgpuMemHostRegisterFloat", "mgpuMemHostRegisterInt32"})
UNUSED = "builtin.module(symbol-dce)"
INLINE = "builtin.module(inline,symbol-dce)"
EXECUTE = "async.execute"
AWAIT = "async.await"
ALLOWED = f"{EXECUTE}, {AWAIT} and async.yield, in one block"


def replace_runtime_calls(module: ir.Module) -> None:
    """Replaces calls of MLIR's runtime that register memory, removes calls that select a device; in place.

    Raises CandidateError(BIND) for a call that selects another device than 0: a program runs on one given
    device.
        call @mgpuSetDefaultDevice(%c0_i32) : (i32) -> ()
        call @mgpuMemHostRegisterFloat(%a) : (memref<*xf32>) -> ()
      becomes
        gpu.host_register %a : memref<*xf32>
    """
    calls = [call for call in walk(module, "func.call") if callee_of(call) in {SET_DEVICE, *REGISTRATIONS}]
    for call in calls:
        if callee_of(call) == SET_DEVICE:
            if constant_of(call.operands[0]) != 0:
                where = f"@{SET_DEVICE} ({location_of(call)})"
                raise CandidateError(Stage.BIND, f"payload: {where}: a program runs on one device, number 0")
        else:
            with call.location, ir.InsertionPoint(call):
                create("gpu.host_register", [], [call.operands[0]])
    for call in reversed(calls):
        call.erase()


def read_program(text: str, entry: str | None = None, *, limit: int | None = WHOLE_LIMIT) -> ProgramPayload:
    """Parses a user's program, inlines its calls, converts tensors to memrefs, and adds deallocations.

    The module has no data of ``dense_resource`` constants: ``take_constants`` and ``attach_data`` follow.
    ``entry``: name of the function; None: ``main``, or the only public function. ``limit``: the most linalg
    and elementwise operations; None: no limit. Raises CandidateError: BIND for text that is not a valid
    program, COMPILE for an unsupported program.
    """
    split = split_payload(text)
    operations = device_operations()
    module = operations.parse(split.text, "payload")
    if limit is not None:
        require_few_operations(module)
        require_few_operations(module, limit, is_whole=True)
    require_resources(module, split)
    avoid_miscompilations(module)
    reject_unknown_floats(module)
    decompose_packing(module)
    decompose_aggregates(module)
    row_writes_to_loops(module)
    expand_composed_math(module)
    name_memory_spaces(module)
    operations.declare_memory(module)
    name = entry_of(module, entry)
    operations.take_stream(function_named(module, name))
    hide_others(module, name)
    replace_runtime_calls(module)
    run_passes(module, UNUSED)
    reject_calls(module)
    operations.inline_stream_functions(module)
    run_passes(module, UNUSED)
    run_passes(module, INLINE)
    gather_globals(function_named(module, name))
    inline_async_regions(function_named(module, name))
    require_names(module)
    require_default_memory(function_named(module, name))
    if has_tensors(module):
        assert_indirect_indices(function_named(module, name))
        module = bufferized(module, name)
    else:
        module = free_memory(module, name)
    return ProgramPayload(module, name, split.resources)


def gather_globals(function: Op) -> None:
    """Moves one ``memref.get_global`` per global to the start of a function, removes the others; in place.

    Kernels then take the global as an argument, in place of a copy in their own module. Each global is one
    value. Globals in workgroup memory stay.
    """
    first: dict[str, Op] = {}
    for op in walk(function, "memref.get_global"):
        if is_workgroup(op.results[0].type):
            continue
        known = first.setdefault(str(op.attributes["name"]), op)
        if known != op:
            op.results[0].replace_all_uses_with(known.results[0])
            op.erase()
    start = function.regions[0].blocks[0].operations[0]
    for op in first.values():
        if op != start.operation:
            op.move_before(start)


def inline_async_regions(function: Op) -> None:
    """Replaces each ``async.execute`` of a function by its body, in place; dependences are computed later.

    A region follows the regions that it depends on, so program order is allowed. Raises
    CandidateError(COMPILE) for operations other than async.execute, async.await and async.yield, and for
    values that control flow forwards.

        %t, %f = async.execute -> !async.value<memref<4xf32>> {
          %0 = gpu.alloc () : memref<4xf32>
          async.yield %0 : memref<4xf32>
        }
        %1 = async.await %f : !async.value<memref<4xf32>>
      becomes
        %0 = gpu.alloc () : memref<4xf32>
    """
    ops = walk(function, EXECUTE, AWAIT)  # inner regions first
    plain: dict[Value, Value] = {}  # value of the async dialect -> the plain value
    for op in ops:
        if op.name == EXECUTE:
            _move_body(op, plain)
        elif list(op.results):
            if op.operands[0] not in plain:
                raise unsupported(op, "a value that control flow hands on", ALLOWED)
            op.results[0].replace_all_uses_with(plain[op.operands[0]])
    for op in reversed(ops):
        for use in list(chain.from_iterable(result.uses for result in op.results)):
            raise unsupported(use.owner.operation, f"a token or value of {op.name}", ALLOWED)
        op.erase()
    left = walk_where(function, lambda op: op.name.startswith("async."))
    if left:
        raise unsupported(left[0], left[0].name, ALLOWED)


def _move_body(op: Op, plain: dict[Value, Value]) -> None:
    block = op.regions[0].blocks[0]
    values = list(op.operands)[len(op.operands) - len(block.arguments) :]  # the operands after the tokens
    for argument, operand in zip(block.arguments, values, strict=True):
        if operand not in plain:
            raise unsupported(op, "a value that control flow hands on", ALLOWED)
        argument.replace_all_uses_with(plain[operand])
    plain.update(zip(list(op.results)[1:], list(last_of(block).operands), strict=True))
    for inner in list(block.operations)[:-1]:
        inner.operation.move_before(op)
