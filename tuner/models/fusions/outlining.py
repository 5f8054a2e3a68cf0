"""Writes each fusion as a function of its own, on memrefs; its operations are still on tensors.

The text is canonical: operations in the order of a depth-first walk from the root, arguments in the order of
their first use, values renumbered. Identical fusions have identical texts, in whichever program they are.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tuner.core.fusion_facts import ZERO_PLANES
from tuner.core.fusions import (
    CONTRACTION_ATTRIBUTE,
    FUSION_ENTRY,
    LOOPS,
    QUANTIZED,
    ROOT_ATTRIBUTE,
    SOURCE,
    WEIGHT_ATTRIBUTE,
    Fusion,
    View,
)
from tuner.core.quantization import QUANTIZATION, WeightFormat, quantized_text
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import maps_in, ops_in, source_of, walk
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.row_writes import SCATTER
from tuner.models.fusions.formation import Members
from tuner.models.fusions.payload import TensorPayload, set_function_type
from tuner.models.fusions.views import memref_type, padding_number

FUSE = "builtin.module(func.func(linalg-fuse-elementwise-ops,canonicalize,cse))"
DEDUPLICATE = "builtin.module(cse)"
VOLUMES = "linalg.conv_3d_ncdhw_fcdhw"
NAMED_SOURCE = re.compile(rf'"{SOURCE}(\w+)"')


@dataclass(frozen=True)
class OutlinedText:
    """The text of a fusion as a function of its own, and which of the values that it reads are its inputs."""

    text: str
    inputs: tuple[int, ...]


# What the text of a fusion depends on -> the text: equal layers have the same, which takes 10 ms to make
KnownTexts = dict[tuple[object, ...], OutlinedText]


def outlined(
    members: Members, places: Mapping[Value, View], weights: Container[int], known: KnownTexts
) -> Fusion:
    """Returns a fusion as a function of its own, on memrefs: text, inputs, outputs and facts for schedules.

    ``places``: the view of memory of each value that the fusion reads or writes; ``weights``: numbers of the
    buffers that hold weights; ``known``: texts of earlier fusions, to which that of a new one is added.
    """
    if members.kind == QUANTIZED:
        return _quantized(members, places)
    if members.root.name == SCATTER:
        return _row_write(members, places)
    sources = _sources(members)
    outputs = [result for result in members.root.results if list(result.uses)] or list(members.root.results)[
        :1
    ]
    function, inputs = _tensor_function(members, outputs)
    ins = list(map(places.get, inputs))  # None: of a value that joining the operations drops
    outs = [places[value] for value in outputs]
    views = (*ins, *outs)
    marks = [""] * len(views)
    for index, view in enumerate(views):
        if view is not None and view.buffer in weights:
            marks[index] = f"{{{WEIGHT_ATTRIBUTE}}}"
    for index, value in enumerate(inputs):
        planes = _zero_planes(value, members)
        if planes is not None:
            marks[index] = f"{{{ZERO_PLANES} = array<i64: {planes[0]}, {planes[1]}>}}"
    is_fused = _is_fused(members)
    types = tuple("" if view is None else memref_type(view) for view in views)
    form = (str(function.module), len(outputs), is_fused, types, tuple(marks))
    if form not in known:
        kept = _fuse(function, len(outputs), is_fused=is_fused)
        marks_of_kept = [*map(marks.__getitem__, kept), *marks[len(ins) :]]
        text = _memref_text(function, _read(inputs, kept, places), outs, marks_of_kept)
        known[form] = OutlinedText(text, tuple(kept))
    made = known[form]
    names = tuple(chain.from_iterable(map(_names_in, members.ops)))
    read = _read(inputs, made.inputs, places)
    return Fusion(members.kind, made.text, tuple(read), tuple(outs), names, members.reason, sources)


def _read(inputs: Sequence[Value], kept: Sequence[int], places: Mapping[Value, View]) -> list[View]:
    return [places[inputs[index]] for index in kept]


def _quantized(members: Members, places: Mapping[Value, View]) -> Fusion:
    """Returns a matmul by quantized weights, all of whose tensors are contiguous."""
    product = members.ops[0]
    form = WeightFormat.of_text(ir.StringAttr(product.attributes[QUANTIZATION]).value)
    inputs = operations.inputs_of(product)
    result = members.root.results[0]
    (m, k), (n, _) = (input_.type.shape for input_ in inputs[:2])
    dtype, output = (str(value.type.element_type) for value in (inputs[0], result))
    text = quantized_text((m, n, k), dtype, form, output)
    ins = tuple(places[value] for value in inputs)
    return Fusion(QUANTIZED, text, ins, (places[result],), (QUANTIZED,), sources=_sources(members))


def _row_write(members: Members, places: Mapping[Value, View]) -> Fusion:
    """Returns a write of rows into the memory of its result, where what it begins with lies already."""
    write = members.root
    rows, into, positions = write.operands
    result = write.results[0]
    ins = (places[rows], places[positions])
    outs = (places[result],)
    types = list(map(memref_type, (*ins, *outs)))
    text = f"""func.func @{FUSION_ENTRY}(%0: {types[0]}, %1: {types[1]}, %2: {types[2]}) {{
      %rows = bufferization.to_tensor %0 restrict : {types[0]} to {rows.type}
      %at = bufferization.to_tensor %1 restrict : {types[1]} to {positions.type}
      %x = bufferization.to_tensor %2 restrict writable : {types[2]} to {into.type}
      %r = {SCATTER} %rows into %x[%at] scatter_dims([0]) unique {{{ROOT_ATTRIBUTE}}}
        : ({rows.type}, {into.type}, {positions.type}) -> {into.type}
      bufferization.materialize_in_destination %r in restrict writable %2 : ({into.type}, {types[2]}) -> ()
      return
    }}"""
    module = str(ir.Module.parse(text))
    return Fusion(members.kind, module, ins, outs, (SCATTER,), members.reason, _sources(members))


def _sources(members: Members) -> tuple[str, ...]:
    return tuple({name: None for op in members.ops for name in NAMED_SOURCE.findall(str(op.location))})


def _tensor_function(members: Members, outputs: Sequence[Value]) -> tuple[TensorPayload, list[Value]]:
    """Returns a fusion's operations in a function, in the order of a walk from the root, and its inputs."""
    order, inputs = _walk(members)
    arguments = ", ".join(f"%{index}: {value.type}" for index, value in enumerate(inputs))
    module = ir.Module.parse(f"func.func @{FUSION_ENTRY}({arguments}) {{ return }}")
    function = TensorPayload(module, module.body.operations[0].operation)
    cloned: dict[Value, Value] = dict(zip(inputs, function.block.arguments, strict=True))
    with ir.InsertionPoint(function.end), ir.Location.unknown():
        for op in order:
            operations.clone_into(op, cloned)
    # Values, one number for each row, that elementwise operations over whole rows read: a second use keeps
    # them from being fused, and then computed again for each element of a row.
    row_values = [
        op.results[0]
        for op in members.ops[:-1]
        if op.name == operations.GENERIC
        and any(
            user.name == operations.GENERIC
            and len(operations.loop_sizes(user)) > len(operations.loop_sizes(op))
            for user in operations.users(op.results[0])
        )
    ]
    _return(function, [cloned[value] for value in (*outputs, *row_values)])
    return function, inputs


def _walk(members: Members) -> tuple[list[Op], list[Value]]:
    """Returns the operations of a fusion's function, producers first, and the values that they read.

    The values are those that the program computes outside of the fusion.
    """
    order: dict[Op, None] = {}
    inputs: dict[Value, None] = {}
    read = operations.read_by(members.root)
    # operations whose producers are visited, the root first: what each reads, and what of it is to be visited
    entered: list[tuple[Op, list[Value], Iterator[Value]]] = [(members.root, read, iter(read))]
    while entered:
        op, read, left = entered[-1]
        for value in left:  # a contraction's operands come before those of its epilogue
            producer = operations.defining(value)
            if producer is not None and producer not in order and _is_cloned(producer, members):
                read = operations.read_by(producer)
                entered.append((producer, read, iter(read)))
                break
        else:
            inputs.update(
                dict.fromkeys(
                    operand for operand in read if not _is_cloned(operations.defining(operand), members)
                )
            )
            order[op] = None
            entered.pop()
    return list(order), list(inputs)


def _is_cloned(producer: Op | None, members: Members) -> bool:
    """Returns whether a fusion's function has a copy of an operation: a member, a constant, a number."""
    return producer is not None and (
        producer in members.ops or producer.name in operations.FREE or operations.is_scalar_op(producer)
    )


def _return(function: TensorPayload, values: Sequence[Value]) -> None:
    function.end.erase()
    with ir.InsertionPoint(function.block), ir.Location.unknown():
        create("func.return", [], values)
    set_function_type(function.function)


def _is_fused(members: Members) -> bool:
    """Returns whether elementwise operations of a fusion are to be joined, with each other or with fills."""
    generics = [op for op in members.ops if op.name == operations.GENERIC]
    tensors = filter(operations.is_tensor, chain.from_iterable(map(operations.inputs_of, generics)))
    reads_fill = any(map(operations.is_free, tensors))
    return members.kind != LOOPS and (len(members.ops) > 1 or reads_fill)


def _fuse(function: TensorPayload, results: int, *, is_fused: bool) -> list[int]:
    """Drops arguments that are not used, and all but the first ``results`` results.

    ``is_fused``: fuses elementwise operations first. Returns the numbers of the arguments that remain.
    """
    run_passes(function.module, FUSE if is_fused else DEDUPLICATE)
    _return(function, list(function.end.operands)[:results])
    run_passes(function.module, DEDUPLICATE)
    arguments = list(function.block.arguments)
    used = [index for index, argument in enumerate(arguments) if list(argument.uses)]
    for number in reversed(range(len(arguments))):
        if number not in used:
            function.block.erase_argument(number)
    set_function_type(function.function)
    return used


def _zero_planes(value: Value, members: Members) -> tuple[int, int] | None:
    """Returns (planes at the start, planes at the end) of zeros that pad the volume a convolution reads.

    None if ``value`` is not the input of a 3-D convolution of the fusion, or has no such planes.
    """
    if not any(op.name == VOLUMES and op.operands[0] == value for op in members.ops):
        return None
    pad = operations.defining(source_of(value, (operations.EXPAND,)))  # by images and channels of size 1
    if pad is None or pad.name != operations.PAD or padding_number(pad) != 0:
        return None
    if pad.results[0].type.shape[-3:] != value.type.shape[-3:]:
        return None
    first, last = (tuple(pad.attributes[name])[-3] for name in ("static_low", "static_high"))
    if first or last:
        return (first, last)
    return None


def _memref_text(
    function: TensorPayload, ins: Sequence[View], outs: Sequence[View], marks: Sequence[str]
) -> str:
    """Returns the function on memrefs; ``marks``: the attributes of each argument, in braces, or ""."""
    types = list(map(memref_type, (*ins, *outs)))
    arguments = ", ".join(f"%{index}: {kind} {marks[index]}" for index, kind in enumerate(types))
    tensors = [str(argument.type) for argument in function.block.arguments]
    reads = "\n".join(
        f"%t{index} = bufferization.to_tensor %{index} restrict : {types[index]} to {kind}"
        for index, kind in enumerate(tensors)
    )
    # a function on memrefs that only converts its arguments to tensors; the ops are cloned into it
    text = f"func.func @{FUSION_ENTRY}({arguments}) {{\n{reads}\nreturn\n}}"
    module = ir.Module.parse(text)
    block = module.body.operations[0].operation.regions[0].blocks[0]
    *converted, end = ops_in(block)
    values = {
        argument: op.results[0] for argument, op in zip(function.block.arguments, converted, strict=True)
    }
    with ir.InsertionPoint(end), ir.Location.unknown():
        for op in function.ops:
            operations.clone_into(op, values)
        for number, result in enumerate(function.end.operands, len(ins)):
            _write(values[result], block.arguments[number])
    for root in [operations.defining(values[result]) for result in function.end.operands]:
        if root is not None:
            root.attributes[ROOT_ATTRIBUTE] = ir.UnitAttr.get()
            for op in walk(module, *operations.CONTRACTIONS):
                op.attributes[CONTRACTION_ATTRIBUTE] = ir.UnitAttr.get()
    run_passes(module, DEDUPLICATE)
    return str(module)


def _write(result: Value, memory: Value) -> None:
    """Creates the write of a result; an empty or filled init of its operation becomes the output's memory."""
    flags = {"restrict": ir.UnitAttr.get(), "writable": ir.UnitAttr.get()}
    op = operations.defining(result)
    if op is not None and op.name.startswith("linalg."):
        _start_from(op, ir.OpResult(result).result_number, memory, flags)
    create("bufferization.materialize_in_destination", [], [result, memory], **flags)


def _start_from(op: Op, number: int, memory: Value, flags: Mapping[str, ir.Attribute]) -> None:
    at = len(op.operands) - len(op.results) + number
    init = operations.defining(op.operands[at])
    if init is None or init.name not in (operations.EMPTY, operations.FILL):
        return
    with ir.InsertionPoint(op), ir.Location.unknown():
        tensor = create("bufferization.to_tensor", [op.results[number].type], [memory], **flags).results[0]
        if init.name == operations.FILL:
            fill = init.clone()
            fill.operands[1] = tensor
            tensor = fill.results[0]
    op.operands[at] = tensor


def _names_in(op: Op) -> list[str]:
    if op.name != operations.GENERIC:
        return [op.name]
    names = [inner.name for inner in operations.body_of(op)[:-1]]
    if names:
        return names
    loops = operations.dimensions(maps_in(op)[0])
    if loops is None or len(loops) < maps_in(op)[0].n_dims:
        return ["linalg.broadcast"]
    return ["linalg.copy" if list(loops) == sorted(loops) else "linalg.transpose"]
