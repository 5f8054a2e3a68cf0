"""What a module changes in place, as a program has it: changed buffers are arguments, after the module's own.

The new value of a changed tensor becomes a result that is written into the tensor's memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.fx import Node

from tuner.models.torch.changed_tensors import drop_copies
from tuner.models.torch.graph_outputs import changed_text, is_change, returned_values
from tuner.models.torch.importer import memory_of


@dataclass(frozen=True)
class BoundChanges:
    """What a graph changes, after its new values have become results, and its changed buffers inputs."""

    texts: tuple[str, ...] = ()  # what is changed: "buffer keys", "input cache"
    buffers: tuple[str, ...] = ()  # names of the inputs that were buffers, after the others
    new_values: tuple[tuple[int, int], ...] = ()  # (number of an input, of the result that is its new value)
    # (number of a result of the module, of an input) where the result is the changed tensor itself, which the
    # graph does not return
    returned: tuple[tuple[int, int], ...] = ()


NO_CHANGES = BoundChanges()


def bind_changes(program: torch.export.ExportedProgram) -> BoundChanges:
    """Makes new values of buffers and inputs results, and changed buffers inputs; returns these changes.

    ``program``, changed in place: functional; its results are tensors alone, its inputs tensors or constants.
        inputs (weight, keys, x), returns (new keys, y)
      becomes
        inputs (weight, x, keys), returns (y, new keys)
    """
    signature = program.graph_signature
    if not any(map(is_change, signature.output_specs)):
        return NO_CHANGES
    drop_copies(program.graph)
    texts = tuple(map(changed_text, filter(is_change, signature.output_specs)))
    changed = _changed_inputs(program)
    buffers = _move_to_inputs(program, map(itemgetter(0), changed))
    inputs = [spec.arg.name for spec in signature.input_specs if _is_tensor_input(spec)]
    owners = {value: inputs.index(name) for name, value in changed}
    kept = []
    returned = []
    for number, value in enumerate(returned_values(program)[0]):
        if value in owners:
            returned.append((number, owners[value]))
        else:
            kept.append(value)
    new_values = []
    for number, (name, value) in enumerate(changed, len(kept)):
        new_values.append((inputs.index(name), number))
        kept.append(value)
    program.graph.output_node().args = (tuple(kept),)
    signature.output_specs[:] = map(_result, kept)
    return BoundChanges(texts, buffers, tuple(new_values), tuple(returned))


def _result(node: Node) -> OutputSpec:
    return OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None)


def _changed_inputs(program: torch.export.ExportedProgram) -> list[tuple[str, Node]]:
    """Returns (name of the placeholder, node of the new value) of each tensor that a graph changes."""
    signature = program.graph_signature
    names = dict(zip(signature.inputs_to_buffers.values(), signature.inputs_to_buffers, strict=True))
    changed = []
    for spec, value in zip(signature.output_specs, program.graph.output_node().args[0], strict=True):
        if spec.kind is OutputKind.BUFFER_MUTATION:
            changed.append((names[spec.target], value))
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            changed.append((spec.target, value))
    return changed


def _move_to_inputs(program: torch.export.ExportedProgram, changed: Iterable[str]) -> tuple[str, ...]:
    """Makes changed buffers inputs, after the others; returns the names of the buffers."""
    signature = program.graph_signature
    placeholders = _placeholders(program)
    specs = {spec.arg.name: spec for spec in signature.input_specs}
    buffers = []
    for name in changed:
        spec = specs[name]
        if spec.kind is not InputKind.BUFFER:
            continue
        buffers.append(spec.target)
        last = placeholders[signature.input_specs[-1].arg.name]
        if last is not placeholders[name]:
            last.append(placeholders[name])
        signature.input_specs.remove(spec)
        signature.input_specs.append(InputSpec(InputKind.USER_INPUT, spec.arg, None))
    return tuple(buffers)


def _placeholders(program: torch.export.ExportedProgram) -> dict[str, Node]:
    return {node.name: node for node in program.graph.find_nodes(op="placeholder")}


def _is_tensor_input(spec: InputSpec) -> bool:
    return spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)


def read_buffers_as_such(program: torch.export.ExportedProgram, buffers: Mapping[str, torch.Tensor]) -> None:
    """Replaces constants of a graph that are the memory of the module's ``buffers`` by these, in place.

    A module may reach its buffers by another object, such as a cache of transformers: torch.export takes
    these for constants.
    """
    signature = program.graph_signature
    placeholders = _placeholders(program)
    known: dict[object, Node] = {}
    for placeholder, name in signature.inputs_to_buffers.items():
        if name in buffers and _has_memory(buffers[name]):
            known[memory_of(buffers[name])] = placeholders[placeholder]
    for spec in tuple(signature.input_specs):
        if spec.kind is not InputKind.CONSTANT_TENSOR:
            continue
        tensor = program.constants[spec.target]
        if not _has_memory(tensor):
            continue
        buffer = known.get(memory_of(tensor))
        if buffer is not None:
            constant = placeholders[spec.arg.name]
            constant.replace_all_uses_with(buffer)
            program.graph.erase_node(constant)
            signature.input_specs.remove(spec)
            del program.constants[spec.target]


def _has_memory(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor has an address: a sparse one has none, nor one of oneDNN."""
    return tensor.layout is torch.strided and tensor.data_ptr() != 0
