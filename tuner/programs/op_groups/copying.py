"""Groups that copy a value to where it must lie: into padding, next to others, to the program's result."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from tuner.core.grouped_program import (
    ELEMENTWISE,
    GROUP_ENTRY,
    ROOT_ATTRIBUTE,
    WEIGHT_ATTRIBUTE,
    OpGroup,
    View,
)
from tuner.mlir.bindings import Value, ir
from tuner.programs.op_groups.op_names import defining, is_free
from tuner.programs.op_groups.outlining import memref_type
from tuner.programs.op_groups.placement import NeededCopy
from tuner.programs.op_groups.views import collapsed


def copying_group(copy: NeededCopy, places: Mapping[Value, View], weights: Collection[int]) -> OpGroup:
    """Returns the group that copies a value, or fills its target where the value is one number."""
    if is_free(copy.source):
        return _filling(copy)
    source, target = _without_unit_dimensions(places[copy.source], copy.target)
    mark = f" {{{WEIGHT_ATTRIBUTE}}}" if source.buffer in weights else ""
    element, rank = source.type.element, len(source.type.shape)
    tensor = _tensor(source)
    loops = ", ".join(f"d{number}" for number in range(rank))
    identity = f"affine_map<({loops}) -> ({loops})>"
    kinds = ", ".join(['"parallel"'] * rank)
    text = f"""func.func @{GROUP_ENTRY}(%0: {memref_type(source)}{mark}, %1: {memref_type(target)}) {{
      %t0 = bufferization.to_tensor %0 restrict : {memref_type(source)} to {tensor}
      %t1 = bufferization.to_tensor %1 restrict writable : {memref_type(target)} to {tensor}
      %r = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{kinds}]}}
        ins(%t0 : {tensor}) outs(%t1 : {tensor}) attrs = {{{ROOT_ATTRIBUTE}}} {{
      ^bb0(%x: {element}, %y: {element}):
        linalg.yield %x : {element}
      }} -> {tensor}
      bufferization.materialize_in_destination %r in restrict writable %1
        : ({tensor}, {memref_type(target)}) -> ()
      return
    }}"""
    return OpGroup(ELEMENTWISE, str(ir.Module.parse(text)), (source,), (target,), ("linalg.copy",))


def _filling(copy: NeededCopy) -> OpGroup:
    fill = defining(copy.source)
    assert fill is not None
    number = defining(fill.operands[0])
    assert number is not None
    kind, tensor, element = memref_type(copy.target), _tensor(copy.target), copy.target.type.element
    text = f"""func.func @{GROUP_ENTRY}(%0: {kind}) {{
      %c = arith.constant {number.attributes["value"]}
      %t0 = bufferization.to_tensor %0 restrict writable : {kind} to {tensor}
      %r = linalg.fill {{{ROOT_ATTRIBUTE}}} ins(%c : {element}) outs(%t0 : {tensor}) -> {tensor}
      bufferization.materialize_in_destination %r in restrict writable %0 : ({tensor}, {kind}) -> ()
      return
    }}"""
    return OpGroup(ELEMENTWISE, str(ir.Module.parse(text)), (), (copy.target,), ("linalg.fill",))


def _tensor(view: View) -> str:
    return "tensor<" + "".join(f"{size}x" for size in view.type.shape) + f"{view.type.element}>"


def _without_unit_dimensions(source: View, target: View) -> tuple[View, View]:
    """Returns both views without dimensions of size 1, and with those merged that lie alike in both."""
    kept = [number for number, size in enumerate(source.type.shape) if size != 1]
    shape = tuple(source.type.shape[number] for number in kept)
    cut = [
        replace(
            view,
            type=replace(view.type, shape=shape),
            strides=tuple(view.strides[number] for number in kept),
        )
        for view in (source, target)
    ]
    groups: list[list[int]] = []
    for number in range(len(shape)):
        merged = [*groups[:-1], [*groups[-1], number]] if groups else [[number]]
        rest = [[each] for each in range(number + 1, len(shape))]
        if groups and all(collapsed(view, [*merged, *rest]) is not None for view in cut):
            groups = merged
        else:
            groups.append([number])
    first, second = (collapsed(view, groups) for view in cut)
    assert first is not None
    assert second is not None
    return first, second
