"""How an exported module is called: which leaves of its arguments and results are tensors or constants.

A leaf is a value that is not a tuple, list or dict, in the order of PyTorch's pytrees. ``CallForm`` is the
value; ``call_form`` reads it from a graph of torch.export.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.models.torch.bound_changes import NO_CHANGES, BoundChanges
from tuner.models.torch.call_binding import CallBinding, require_constant, signature_of
from tuner.models.torch.graph_outputs import is_change, is_result, shared_memory

# classes of values in torch.export's signatures
TENSOR = "TensorArgument"
CONSTANT = "ConstantArgument"
INPUT = "USER_INPUT"  # what torch.export calls an argument in a signature: others are weights


@dataclass(frozen=True, eq=False, kw_only=True)
class CallForm:
    """How a module is called: structure of its arguments and results (pytree specs), and types of tensors."""

    in_spec: Any  # of (arguments, keyword arguments)
    out_spec: Any
    inputs: tuple[int, ...]  # which leaves of the arguments are the function's; others are constants
    outputs: tuple["Output", ...]
    types: tuple[torch.dtype, ...]  # of the function's arguments: MLIR's have no sign
    result_types: tuple[torch.dtype, ...]  # of its results
    constants: tuple[tuple[int, object], ...] = ()  # leaves of the arguments that are not tensors
    shared: str = ""  # which result shares memory with an input, a weight or a result, in eager mode
    signature: inspect.Signature | None = None  # of the module's ``forward``, None where that is not known
    changes: BoundChanges = NO_CHANGES  # whose buffers are the function's last arguments

    @property
    def names(self) -> tuple[str, ...]:
        """Returns a name for messages per tensor that a call is given: "argument 0"."""
        return tuple(f"argument {at}" for at in self.inputs)

    def tensors_of(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns the tensors of a call, in the order in which the payload's function takes them.

        Raises UsageError for arguments of another structure than the example's, and for a constant that
        differs.
        """
        leaves = CallBinding(self.in_spec, self.signature).leaves_of(arguments, keywords)
        for at, constant in self.constants:
            require_constant(f"argument {at}", leaves[at], constant)
        return tuple(leaves[at] for at in self.inputs)


@dataclass(frozen=True, eq=False)
class Output:
    """A leaf of what a module returns: result number ``result``, or ``constant`` where ``result`` is None."""

    result: int | None
    constant: object = None


def call_form(
    module: torch.nn.Module | torch.export.ExportedProgram, program: torch.export.ExportedProgram
) -> CallForm:
    """Returns how a module is called whose graph is ``program``; nothing is lowered.

    Raises UsageError for a module that changes its parameters or constants, or that returns no tensor.
    """
    require_supported(program)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    signature = program.graph_signature
    inputs, constants = tensor_and_constant_leaves(program)
    arguments = filter(is_argument, filter(is_tensor, signature.input_specs))
    results = filter(is_tensor, filter(is_result, signature.output_specs))
    return CallForm(
        in_spec=program.call_spec.in_spec,
        out_spec=program.call_spec.out_spec,
        inputs=inputs,
        outputs=outputs_of(program, has_numbers=True),
        types=tuple(values[spec.arg.name].dtype for spec in arguments),
        result_types=tuple(values[spec.arg.name].dtype for spec in results),
        constants=constants,
        shared=next(filter(None, shared_memory(program)), ""),
        signature=signature_of(module),
    )


def tensor_and_constant_leaves(
    program: torch.export.ExportedProgram,
) -> tuple[tuple[int, ...], tuple[tuple[int, object], ...]]:
    """Returns (indices of the arguments' leaves that are tensors, (index, value) of the others)."""
    inputs = []
    constants = []
    for at, spec in enumerate(filter(is_argument, program.graph_signature.input_specs)):
        if is_tensor(spec):
            inputs.append(at)
        else:
            constants.append((at, spec.arg.value))
    return tuple(inputs), tuple(constants)


def outputs_of(program: torch.export.ExportedProgram, *, has_numbers: bool = False) -> tuple[Output, ...]:
    """Returns what each leaf of a module's results is: a tensor by the index of its result, or a constant.

    ``has_numbers``: numbers that the module computes count as results too; otherwise they raise UsageError,
    as does a module that returns no tensor.
    """
    outputs: list[Output] = []
    number = 0
    for spec in filter(is_result, program.graph_signature.output_specs):
        if type(spec.arg).__name__ == CONSTANT:
            outputs.append(Output(None, spec.arg.value))
        elif has_numbers or is_tensor(spec):
            outputs.append(Output(number))
            number += 1
        else:
            raise UsageError("the module returns a number that it computes: only tensors are supported")
    if not number:
        raise UsageError("the module returns no tensor")
    return tuple(outputs)


def require_supported(program: torch.export.ExportedProgram) -> None:
    """Raises UsageError for a graph that changes parameters or constants."""
    for spec in program.graph_signature.output_specs:
        if not is_result(spec) and not is_change(spec):
            owner = spec.kind.name.partition("_")[0].lower()
            raise UsageError(
                f"the module changes its {owner} {spec.target or spec.arg.name}: only buffers may be changed",
                "return the new value",
            )


def is_argument(spec: Any) -> bool:
    """Returns whether an input of a graph's signature is an argument of the call, not a weight or buffer."""
    return bool(spec.kind.name == INPUT)


def is_tensor(spec: Any) -> bool:
    """Returns whether an input or output of a graph's signature is a tensor, not a constant."""
    return type(spec.arg).__name__ == TENSOR


def rebuilt(leaves: list[Any], spec: _pytree.TreeSpec) -> Any:
    """Returns ``leaves`` in the tuples, lists and dicts that the pytree ``spec`` describes."""
    return _pytree.tree_unflatten(leaves, spec)
